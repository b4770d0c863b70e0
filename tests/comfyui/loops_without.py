#!/usr/bin/env python3
# needs: comfyui
# timeout: 300
"""Without memstow in the process, a port passes its value on like a wire. Nodes that start a loop or read its result
fail, and say how ComfyUI is started with memstow. The routes of loops do not exist."""
import json

from _comfy import link
from _loops import Loops, counter, node, port

with Loops(under=None) as comfy:
    done = comfy.wait(
        comfy.queue(
            {"a": node("AddInts", a=1, b=2), "wire": port("x", "a"), "show": node("Fingerprint", value=link("wire"))}))
    assert done["outputs"]["show"]["digest"] == ["3"], done
    start = node("DiscomfortLoopExecutor", workflow_paths=json.dumps(counter()), max_iterations=3,
                 initial_inputs="n: 5")
    for workflow in ({"start": start}, {"read": node("DiscomfortLoopResult", loop="a", unique_id="n"), "show": node(
            "Fingerprint", value=link("read"))}):
        done = comfy.wait(comfy.queue(workflow))
        assert "memstow run -- python main.py" in json.dumps(done["status"]), done["status"]
    assert comfy.request("GET", "/memstow/loops")[0] == 404
