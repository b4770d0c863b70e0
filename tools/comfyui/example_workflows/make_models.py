"""Makes what the examples of loops need, in ComfyUI's folder:

    python examples/loops/make_models.py /path/to/ComfyUI

In: a folder, ComfyUI's or that of its --base-directory. Out: a VAE of 10 MB with random weights, in the form of TAESD
(models/vae/loops_tiny.safetensors), pictures (input/loops_pictures), and the workflows of this folder
(user/default/workflows/loops). It needs PyTorch, safetensors and Pillow, as ComfyUI does, and no network. Nothing that
is there already is written over."""
import importlib.util
import pathlib
import shutil
import sys

WIDTH = 64   # channels inside of the VAE
LATENT = 4   # channels of a latent

# The layers of TAESD's two halves by their numbers: (inputs, outputs, has a bias), or "block" for three convolutions of
# equal width.
ENCODER = {0: (3, WIDTH, True), 1: "block", 2: (WIDTH, WIDTH, False), 3: "block", 4: "block", 5: "block",
           6: (WIDTH, WIDTH, False), 7: "block", 8: "block", 9: "block", 10: (WIDTH, WIDTH, False), 11: "block",
           12: "block", 13: "block", 14: (WIDTH, LATENT, True)}
DECODER = {1: (LATENT, WIDTH, True), 3: "block", 4: "block", 5: "block", 7: (WIDTH, WIDTH, False), 8: "block",
           9: "block", 10: "block", 12: (WIDTH, WIDTH, False), 13: "block", 14: "block", 15: "block",
           17: (WIDTH, WIDTH, False), 18: "block", 19: (WIDTH, 3, True)}


def weights_of(layers, seed):
    """The weights of one half: name → tensor."""
    import torch
    generator, found = torch.Generator().manual_seed(seed), {}
    for number, layer in layers.items():
        parts = {f"{number}.conv.{place}": (WIDTH, WIDTH, True)
                 for place in (0, 2, 4)} if layer == "block" else {str(number): layer}
        for name, (inputs, outputs, has_bias) in parts.items():
            found[f"{name}.weight"] = torch.randn(outputs, inputs, 3, 3, generator=generator) * (9 * inputs) ** -0.5
            if has_bias:
                found[f"{name}.bias"] = torch.zeros(outputs)
    return found


def make_vae(path):
    import safetensors.torch
    import torch
    halves = {"taesd_encoder": weights_of(ENCODER, 1), "taesd_decoder": weights_of(DECODER, 2)}
    weights = {f"{half}.{name}": weight for half, names in halves.items() for name, weight in names.items()}
    safetensors.torch.save_file({**weights, "vae_scale": torch.tensor(0.18215), "vae_shift": torch.tensor(0.0)}, path)


def make_pictures(folder):
    from PIL import Image
    folder.mkdir()
    for number in range(1, 6):
        Image.new("RGB", (64, 64), (50 * number, 255 - 50 * number, 120)).save(folder / f"picture{number}.png")


def make(path, how):
    if path.exists():
        print(f"{path} is there already")
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    how(path)
    print(f"{path} was made")


def main():
    if len(sys.argv) != 2 or not pathlib.Path(sys.argv[1]).is_dir():
        sys.exit("usage: make_models.py FOLDER, which is ComfyUI's, or that of its --base-directory")
    missing = [name for name in ("torch", "safetensors", "PIL") if importlib.util.find_spec(name) is None]
    if missing:
        sys.exit(f"make_models.py: this Python has no {' and no '.join(missing)}: run it with the Python that runs "
                 "ComfyUI")
    root, here = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).parent
    make(root / "models/vae/loops_tiny.safetensors", make_vae)
    make(root / "input/loops_pictures", make_pictures)
    for workflow in sorted(here.glob("*.json")):
        make(root / "user/default/workflows/loops" / workflow.name, lambda path,
             source=workflow: shutil.copy(source, path))


if __name__ == "__main__":
    main()
