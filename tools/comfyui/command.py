"""Finds the command memstow. In: the environment, and the place of this folder. Out: a path. prestartup_script.py loads
this file before the pack is a package, so it imports nothing of the pack."""
import os
import pathlib
import shutil
import sys


def find():
    """The path of the command: MEMSTOW_COMMAND, else the command beside this folder, else the command beside this
    Python, else the first in PATH. None if there is none."""
    here = pathlib.Path(__file__).resolve().parent
    places = [os.environ.get("MEMSTOW_COMMAND"), here.parent.parent.parent / "bin/memstow",
              here.parent.parent / "build/release/memstow", here.parent.parent / "build/env/bin/memstow",
              pathlib.Path(sys.executable).parent / "memstow", shutil.which("memstow")]
    return next((str(place) for place in places if place and os.access(place, os.X_OK)), None)
