# needs: comfyui
# timeout: 300
"""ComfyUI is closed by Ctrl-C while a workflow runs, and by a second Ctrl-C. Waiting workflows are dropped, the running
one is interrupted at once, and ComfyUI ends in order, with status 0. The daemon thread that runs workflows and OpenMP's
threads are still there at the end; nobody waits for them. Processes of other packs end with ComfyUI, except the one
that MEMSTOW_SERVER_MODE names. ends/shutdown_no_leaks and closing_long show that a workflow may come to its end."""
import os, pathlib, re, signal

from _comfy import Comfy
from _closing import NAPS, close, log, nap, steps

CHILDREN = '''
class Children:
    RETURN_TYPES, FUNCTION, CATEGORY, OUTPUT_NODE = (), "run", "test", True

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}}

    def run(self):
        import memstow_shutdown as shutdown
        for name in ("server", "other", ""):
            print(f"child {name!r} {shutdown.start(['sleep', '600'], name).pid}", flush=True)
        return {}

NODE_CLASS_MAPPINGS = {"Children": Children}
'''

with Comfy(under="memstow", options=("--stacks=none",), before=(CHILDREN, NAPS), name="hurry",
           env={"MEMSTOW_SERVER_MODE": "server"}) as comfy:
    comfy.run({"children": {"class_type": "Children", "inputs": {}}})
    comfy.queue(nap(60))
    comfy.queue(nap(61))
    assert close(comfy, again_after=1) == 0, comfy.log()
    assert "napped" not in comfy.log() and "is interrupted: ComfyUI closes" in comfy.log(), comfy.log()
    results = steps(comfy)
    assert results["ComfyUI: workflow"] < 0 and results["ComfyUI: interrupt"] == 0, results
    # the step "thread" would mean that ComfyUI waited for a thread
    steps_of_threads = [line["step"] for line in log(comfy) if "thread" in line["step"]]
    assert len(steps_of_threads) >= 2 and set(steps_of_threads) == {"left thread"}, log(comfy)
    children = {name: int(pid) for name, pid in re.findall(r"child '(\w*)' (\d+)", comfy.log())}
    alive = {name for name, pid in children.items() if pathlib.Path(f"/proc/{pid}").exists()}
    os.kill(children["server"], signal.SIGKILL)
    assert set(children) == {"server", "other", ""} and alive == {"server"}, (children, alive)
