"""Starts ComfyUI's main.py (argument 1: its folder) on a PyTorch for the CPU: torchvision's compiled part does not load
there, and its Python part is content once the two operators that it registers exist."""
import os, runpy, sys

import torch

library = torch.library.Library("torchvision", "DEF")
library.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
library.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

folder = sys.argv.pop(1)
sys.argv[0] = os.path.join(folder, "main.py")
sys.path[0] = folder
os.chdir(folder)
runpy.run_path(sys.argv[0], run_name="__main__")
