"""The node DiscomfortFolderImageLoader: loads the images of a folder. In: a folder of this machine. Out: the images in
a fixed order, as one batch or as a batch for each size; the number of images; their names. Unreadable files are named
in the log, and are left out."""
import os
import re
import unicodedata
from typing import Any

from .. import log

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff")
RULES = ("refuse", "group", "resize to first", "resize to largest", "crop to first")


def order_of(name: str) -> tuple:
    """Natural order of names: img2 before img10. Names that differ only in case are neighbours."""
    return ([int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name.casefold())], name)


def one_line(text: str) -> str:
    """A file's name as one line of valid text, also if the name contains line ends or is not UTF-8. memstow_loops.graph
    has the same function; this copy exists because the node also works without memstow_loops."""
    line = "".join(" " if unicodedata.category(letter) in ("Cc", "Zl", "Zp") else letter for letter in text)
    return line.encode(errors="backslashreplace").decode()


def read(path: str) -> Any:
    """Reads an image file. Returns a tensor whose dimensions are height, width and three colours, and whose values are
    from 0 to 1. The image is turned as its metadata say. If the file is an animation, its first image is read."""
    import numpy
    import torch
    from PIL import Image, ImageOps
    with Image.open(path) as image:
        turned = ImageOps.exif_transpose(image)
        if turned.mode.startswith("I"): # grey with 16 bits: I, I;16, I;16B
            grey = torch.from_numpy(numpy.asarray(turned).astype(numpy.float32) / 65535.0)
            return grey.clamp(0, 1).unsqueeze(-1).repeat(1, 1, 3)
        return torch.from_numpy(numpy.asarray(turned.convert("RGB"), dtype=numpy.float32) / 255.0)


def resized(image: Any, height: int, width: int, is_cropped: bool) -> Any:
    """The image in another size: stretched, or first cut to its middle part in the proportions of the new size."""
    import comfy.utils
    if tuple(image.shape[:2]) == (height, width):
        return image
    crop = "center" if is_cropped else "disabled"
    moved = comfy.utils.common_upscale(image.movedim(-1, 0)[None], width, height, "lanczos", crop)
    return moved[0].movedim(0, -1)


def size_of(image: Any) -> str:
    return f"{image.shape[1]}×{image.shape[0]}"


def batches_of(images: list, names: list, rule: str) -> list:
    """The images in batches, each of one image size. Only the rule "group" makes several batches: one for each size, in
    the order of the first images of each size."""
    import torch
    sizes = list(dict.fromkeys(tuple(image.shape[:2]) for image in images))
    if len(sizes) > 1 and rule == "refuse":
        other = next(number for number, image in enumerate(images) if tuple(image.shape[:2]) != sizes[0])
        raise ValueError(f"the images differ in size: {names[0]} is {size_of(images[0])}, {names[other]} is "
                         f"{size_of(images[other])}. "
                         f"Choose another rule for mixed_sizes: {', '.join(RULES[1:])}")
    if rule == "group":
        return [torch.stack([image for image in images if tuple(image.shape[:2]) == size]) for size in sizes]
    height, width = max(sizes, key=lambda size: size[0] * size[1]) if rule == "resize to largest" else sizes[0]
    return [torch.stack([resized(image, height, width, rule == "crop to first") for image in images])]


class DiscomfortFolderImageLoader:
    """The images of a folder as one batch, in the order of their names (img2 before img10). Images of mixed sizes are
    grouped, a batch for each size, or resized."""
    RETURN_TYPES = ("IMAGE", "INT", "STRING")
    RETURN_NAMES = ("images", "image_count", "file_names")
    OUTPUT_IS_LIST = (True, False, False)
    FUNCTION = "load_images"
    CATEGORY = "memstow/loops"
    DESCRIPTION = __doc__

    @classmethod
    def INPUT_TYPES(cls) -> dict:
        return {"required": {"folder_path": ("STRING", {"default": ""})},
                "optional": {"mixed_sizes": (list(RULES), {"default": "refuse"}),
                             "first": ("INT",
                                       {"default": 0, "min": 0, "max": 2**31,
                                        "tooltip": "how many images to leave out at the beginning"}),
                             "count": ("INT",
                                       {"default": 0, "min": 0, "max": 2**31,
                                        "tooltip": "how many images to load at most; 0: all"})}}

    @classmethod
    def IS_CHANGED(cls, folder_path: Any = None, **_others: Any) -> Any:
        """The folder's files with size and time, so that a changed folder is read again."""
        try:
            return repr([(entry.name, entry.stat().st_size, entry.stat().st_mtime_ns)
                         for entry in files_in(folder_path)])
        except (OSError, TypeError, ValueError):
            return float("nan")

    def load_images(self, folder_path: str, mixed_sizes: str = "refuse", first: int = 0, count: int = 0) -> dict:
        files = files_in(folder_path)
        images, names, unreadable = [], [], []
        for entry in files[first:first + count if count else None]:
            try:
                images.append(read(entry.path))
                names.append(one_line(entry.name)) # one line for each name
            except Exception as error: # noqa: BLE001: Pillow raises any kind of exception for damaged files
                unreadable.append(one_line(f"{entry.name} ({error})"))
        folder = one_line(folder_path)
        if unreadable:
            log.warning("memstow: %s: these images cannot be read: %s", folder, "; ".join(unreadable))
        if not images:
            raise ValueError(f"{folder}: no image" + (f" that can be read: {'; '.join(unreadable)}" if unreadable
                                                           else f" of {len(files)} is left after the first {first}"
                                                           if files else f" here: none of {', '.join(SUFFIXES)}"))
        batches = batches_of(images, names, mixed_sizes)
        return {"ui": {"unreadable": unreadable}, "result": (batches, len(images), "\n".join(names))}


def is_file(entry: Any) -> bool:
    try:
        return bool(entry.is_file())
    except OSError: # such as a link to itself
        return False


def files_in(folder: str) -> list:
    """The image files of a folder, in order. A relative path is below ComfyUI's input folder."""
    import folder_paths
    path = os.path.join(folder_paths.get_input_directory(), folder)
    if not folder or not os.path.isdir(path):
        raise ValueError(f"there is no folder {folder!r}")
    with os.scandir(path) as entries:
        found = [entry for entry in entries if entry.name.lower().endswith(SUFFIXES) and is_file(entry)]
    return sorted(found, key=lambda entry: order_of(entry.name))
