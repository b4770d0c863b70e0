# needs: comfyui
# timeout: 600
# long
"""When ComfyUI closes, the running workflow comes to its end, and the next one does not begin. A workflow that takes
longer than ten seconds is interrupted. If a workflow cannot be interrupted, the process ends nevertheless, with status
1 and without an abort."""
import time

from _comfy import Comfy
from _closing import NAPS, close, nap, steps

for name, kind, status in (("late", "Nap", 0), ("stuck", "Stuck", 1)):
    with Comfy(under="memstow", options=("--stacks=none",), before=("NODE_CLASS_MAPPINGS = {}", NAPS),
               name=name) as comfy:
        comfy.queue(nap(120, kind))
        begun = time.monotonic()
        assert close(comfy) == status, comfy.log()
        print(f"{name}: closed within {time.monotonic() - begun:.1f} s")
        results = steps(comfy)
        assert results["ComfyUI: workflow"] < 0 and (results["ComfyUI: interrupt"] == 0) == (status == 0), results
        assert "terminate called" not in comfy.log() and "Aborted" not in comfy.log(), comfy.log()

with Comfy(under="memstow", options=("--stacks=none",), before=("NODE_CLASS_MAPPINGS = {}", NAPS),
           name="drained") as comfy:
    comfy.queue(nap(3))
    comfy.queue(nap(4))
    assert close(comfy) == 0, comfy.log()
    assert comfy.log().count("napped") == 1, comfy.log() # the second one never began
    results = steps(comfy)
    assert set(results.values()) == {0} and "ComfyUI: interrupt" not in results, results
