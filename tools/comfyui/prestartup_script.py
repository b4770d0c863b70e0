"""Starts ComfyUI again in the same process, under memstow, if the user asked for it. ComfyUI runs this file before it
loads anything large. In: MEMSTOW=1 in the environment (MEMSTOW=0: never), or the setting memstow.start. Out: the same
process with the library preloaded and with the same arguments. ComfyUI is started again only once. If memstow is
missing or cannot start this Python, ComfyUI goes on without memstow. One line in the log says what happened."""
import logging
import pathlib
import runpy

try: # not an import: this file is not part of a package yet
    runpy.run_path(str(pathlib.Path(__file__).resolve().with_name("starting.py")))["start"]()
except Exception: # ComfyUI must start
    logging.getLogger("memstow").exception("memstow: could not start ComfyUI again; it runs as always")
