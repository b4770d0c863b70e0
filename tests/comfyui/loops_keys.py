#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# long
"""Another pack has registered keys of the loops' nodes. These keys are left to the other pack, and the log says so for
each key. All other keys belong to this pack. If DiscomfortPort belongs to this pack, loops still run."""
from _comfy import link
import _loops
from _loops import Loops, counter, node

KEYS = ["DiscomfortPort", "DiscomfortLoopExecutor", "DiscomfortLoopResult", "DiscomfortFolderImageLoader",
        "DiscomfortImageDescriber"]
INTERNAL = ["MemstowLoopLoad", "MemstowLoopSave"]
THEIRS = '''
import nodes
class Theirs:
    RETURN_TYPES, FUNCTION, CATEGORY = ("INT",), "run", "test"
    INPUT_TYPES = classmethod(lambda cls: {"required": {"number": ("INT", {"default": 1})}})
    def run(self, number): return (number + 1000,)
for key in %r: nodes.NODE_CLASS_MAPPINGS[key] = Theirs
'''
before = _loops.NODES
for number, theirs in enumerate((KEYS, KEYS[1:])):
    _loops.NODES = THEIRS % theirs + before
    with Loops(name=f"comfyui{number}") as comfy:
        lines = [line for line in comfy.log().splitlines() if "leaves it to it" in line]
        assert len(lines) == len(theirs), lines
        for key in KEYS + INTERNAL:
            outputs = comfy.get(f"/object_info/{key}")[key]["output"]
            said = [line for line in lines if f"the node {key} is " in line]
            assert len(said) == (key in theirs), (key, lines)
            assert all("aaa_other" in line for line in said), f"it does not name the other pack: {said}"
            assert (outputs == ["INT"]) == (key in theirs), (key, outputs)
        graph = {key: node(key, number=number) for number, key in enumerate(theirs)}
        shows = {f"show {key}": node("Fingerprint", value=link(key)) for key in theirs}
        ran = comfy.run({**graph, **shows})["outputs"]
        assert [ran[f"show {key}"]["digest"] for key in theirs] == [[str(1000 + at)] for at in range(len(theirs))], ran
        if "DiscomfortPort" not in theirs:
            assert comfy.loop_of(counter(), inputs={"n": 0}, iterations=3)["values_of_ports"] == {"n": 3}
