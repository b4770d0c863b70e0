"""Starts ComfyUI as tests/comfyui_main.py does, with the savings of _quick.py. Needs the folder tests in PYTHONPATH."""
import pathlib, runpy

import _quick

_quick.prepare()
runpy.run_path(str(pathlib.Path(__file__).parents[1] / "comfyui_main.py"), run_name="__main__")
