"""Starts ComfyUI as tests/comfyui_main.py does, with the savings of _quick.py. Garbage collections leave out the
modules that ComfyUI imports before it makes its event loop. Otherwise each collection takes a quarter of a second, and
each run makes several. Needs the folder tests in PYTHONPATH."""
import asyncio, gc, pathlib, runpy

import _quick


def new_event_loop(make=asyncio.new_event_loop):
    gc.freeze()
    return make()


asyncio.new_event_loop = new_event_loop
_quick.prepare()
runpy.run_path(str(pathlib.Path(__file__).parents[1] / "comfyui_main.py"), run_name="__main__")
