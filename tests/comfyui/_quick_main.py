"""Starts ComfyUI as tests/comfyui_main.py does, in three quarters of its processor time: torchvision is loaded without
torch._dynamo. Needs the folder tests in PYTHONPATH."""
import pathlib, runpy

import torchvision_operators

torchvision_operators.ensure()
torchvision_operators.import_without_dynamo()
runpy.run_path(str(pathlib.Path(__file__).parents[1] / "comfyui_main.py"), run_name="__main__")
