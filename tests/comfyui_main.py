"""Starts ComfyUI's main.py (argument 1: its folder). Where torchvision's compiled part does not load (on a PyTorch for the
CPU), its Python part is content once the two operators that it registers exist."""
import importlib.util, os, pathlib, runpy, sys

import torch


def compiled_part_loads():
    folder = pathlib.Path(importlib.util.find_spec("torchvision").origin).parent
    try:
        for library in folder.glob("_C*.so"):
            torch.ops.load_library(library)
    except OSError:
        return False
    return hasattr(torch.ops.torchvision, "nms")


if not compiled_part_loads():
    library = torch.library.Library("torchvision", "DEF")
    library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

folder = sys.argv.pop(1)
sys.argv[0] = os.path.join(folder, "main.py")
sys.path[0] = folder
os.chdir(folder)
runpy.run_path(sys.argv[0], run_name="__main__")
