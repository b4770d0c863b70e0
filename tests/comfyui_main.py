"""Starts ComfyUI's main.py (argument 1: its folder). It also works if torchvision's compiled part does not load."""
import os, runpy, sys

import torchvision_operators

torchvision_operators.ensure()
folder = sys.argv.pop(1)
sys.argv[0] = os.path.join(folder, "main.py")
sys.path[0] = folder
os.chdir(folder)
runpy.run_path(sys.argv[0], run_name="__main__")
