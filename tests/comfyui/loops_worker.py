#!/usr/bin/env python3
# needs: comfyui
# timeout: 300
"""A node fails. ComfyUI then calls str() of the node's input, which also fails, so ComfyUI's worker thread ends. The
running loop fails and says why. A loop that begins later fails in the same way. Both loops can be deleted, and nothing
waits in the queue. The pack does not warn that this program runs workflows without ComfyUI's worker."""
import time

from _comfy import link
from _loops import Loops, counter, node, port

NODES = """
class Mute:
    def __str__(self): raise RuntimeError("as planted")
class MakeMute:
    RETURN_TYPES, FUNCTION, CATEGORY = ("MUTE",), "run", "test"
    INPUT_TYPES = classmethod(lambda cls: {"required": {"number": ("INT", {"default": 0})}})
    def run(self, number): return (Mute(),)
class FailMute:
    RETURN_TYPES, FUNCTION, CATEGORY = ("INT",), "run", "test"
    INPUT_TYPES = classmethod(lambda cls: {"required": {"mute": ("MUTE",)}})
    def run(self, mute): raise ValueError("as planted")
NODE_CLASS_MAPPINGS = {"MakeMute": MakeMute, "FailMute": FailMute}
"""
STEP = {"in": port("n"), "make": node("MakeMute", number=link("in")), "fail": node("FailMute", mute=link("make")),
        "out": port("n", "fail")}


class Lost(Loops):
    def failed_hooks(self):
        return [] # tracebacks of the planted error have the pack's hooks in them, although no hook fails


with Lost(packs={"mute": {"__init__.py": NODES}}) as comfy:
    for step in (STEP, counter()):
        name = comfy.begin(step, inputs={"n": 0}, iterations=2)
        found = comfy.over(name, 60)
        assert found["state"] == "failed", found
        assert "iteration 1, workflow 1: ComfyUI's worker thread has ended" in found["error"], found
        assert comfy.get("/queue")["queue_pending"] == []
        assert comfy.status_of(f"/memstow/loops?name={name.replace(' ', '%20')}", method="DELETE") == 200
    assert comfy.get("/memstow/loops")["loops"] == []
    time.sleep(12) # the pack would warn ten seconds after the end of a run
