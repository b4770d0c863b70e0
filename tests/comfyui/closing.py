# needs: comfyui
# timeout: 300
"""ComfyUI is closed by Ctrl-C while a workflow runs, and by a second one: what waits is dropped, what runs is interrupted at once,
and it ends in order, with status 0. The daemon that runs workflows, and OpenMP's threads, are still there at the end, and nobody
waits for them. That a workflow may come to its end is shown by ends/shutdown_no_leaks and closing_long."""
from _comfy import Comfy
from _closing import NAPS, close, log, nap, steps

with Comfy(under="memstow", options=("--stacks=none",), before=("NODE_CLASS_MAPPINGS = {}", NAPS), name="hurry") as comfy:
    comfy.queue(nap(60))
    comfy.queue(nap(61))
    assert close(comfy, again_after=1) == 0, comfy.log()
    assert "napped" not in comfy.log() and "is interrupted: ComfyUI closes" in comfy.log(), comfy.log()
    results = steps(comfy)
    assert results["ComfyUI: workflow"] < 0 and results["ComfyUI: interrupt"] == 0, results
    steps_of_threads = [line["step"] for line in log(comfy) if "thread" in line["step"]] # "thread": one that was waited for
    assert len(steps_of_threads) >= 2 and set(steps_of_threads) == {"left thread"}, log(comfy)
