# needs: comfyui
# timeout: 300
"""ComfyUI is closed by Ctrl-C while a workflow runs, and by a second one: what waits is dropped, what runs is interrupted at once,
and it ends in order, with status 0. That a workflow may come to its end is shown by ends/shutdown_no_leaks and closing_long."""
from _comfy import Comfy
from _closing import NAPS, close, nap, steps

with Comfy(under="memstow", options=("--stacks=none",), before=("NODE_CLASS_MAPPINGS = {}", NAPS), name="hurry") as comfy:
    comfy.queue(nap(60))
    comfy.queue(nap(61))
    assert close(comfy, again_after=1) == 0, comfy.log()
    assert "napped" not in comfy.log() and "is interrupted: ComfyUI closes" in comfy.log(), comfy.log()
    results = steps(comfy)
    assert results["ComfyUI: workflow"] < 0 and results["ComfyUI: interrupt"] == 0, results
