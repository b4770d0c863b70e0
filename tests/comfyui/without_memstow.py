#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""Without memstow in the process the pack hooks nothing: ComfyUI's functions are its own, outputs are the same, the
policy node is a wire, the routes of memory do not exist, and one line in the log says how to start memstow. The Python
module memstow does nothing, and says so once."""
import shutil, subprocess, sys

import support
from _comfy import Comfy, mixed

LOOKS = '''
import logging
import comfy.model_management, comfy.model_patcher, comfy.sd, comfy.utils, comfy_execution.utils, execution
import threading
def places():
    for holder, names in ((comfy.model_management, ("unload_all_models", "soft_empty_cache")),
                          (comfy.model_patcher.ModelPatcher, ("__init__", "load", "partially_load", "unpatch_model")),
                          (comfy.sd, ("load_checkpoint_guess_config",)),
                          (comfy.utils, ("load_torch_file",)),
                          (comfy_execution.utils.CurrentNodeContext, ("__enter__", "__exit__")),
                          (execution.PromptExecutor, ("execute_async", "reset")),
                          (execution.PromptQueue, ("get_flags", "get", "__init__"))):
        for name in names:
            yield holder, name, getattr(holder, name)
OURS = "/custom_nodes/memstow/", "/tools/comfyui/", "/tools/python/"
class Look:
    RETURN_TYPES, FUNCTION, CATEGORY, OUTPUT_NODE = (), "run", "test", True
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {}}
    def run(self):
        hooked = [name for holder, name, function in places() if hasattr(function, "__wrapped__")
                  or any(folder in function.__code__.co_filename for folder in OURS)]
        threads = [t.name for t in threading.enumerate() if "memstow" in t.name]
        return {"ui": {"hooked": hooked, "threads": threads}}
NODE_CLASS_MAPPINGS = {"Look": Look}
'''
digests = {}
for name, under, pack in (("bare", None, False), ("without", None, True), ("under", "double", True)):
    with Comfy(under=under, pack=pack, name=name, before=("NODE_CLASS_MAPPINGS = {}", LOOKS)) as comfy:
        workflow = mixed(1) if pack else mixed(1, None, None)
        done = comfy.wait(comfy.queue({**workflow, "look": {"class_type": "Look", "inputs": {}}}))
        assert done["status"]["status_str"] == "success", done
        digests[name] = comfy.digest(done)
        look = done["outputs"]["look"]
        if under:
            assert "get_flags" in look["hooked"] and look["threads"] == ["memstow requests"], look
        else:
            assert look == {"hooked": [], "threads": []}, look
            assert comfy.get("/memstow/owners") is None
            assert comfy.log().count("ComfyUI was not started under memstow") == int(pack)
assert len(set(digests.values())) == 1, digests

USES = '''
import asyncio, memstow
assert not memstow.active() and memstow.version() is None
owner = memstow.owner("a", policy="free")
with owner.scope(), memstow.run("r"):
    assert owner.assign(bytearray(10)) == owner.stow() == owner.restore() == owner.release() == memstow.trigger() == 0
owner.set_policy("keep"), owner.set_idle(True), owner.set_discard(True), owner.adopt(owner), owner.retire()
memstow.trace({}), memstow.snapshot("no")
assert memstow.shares() == memstow.decide() == [] and memstow.decisions() == ([], 0) and memstow.next_request(5) is None
assert memstow.full_cleanup("x") is False and owner.figures().live_bytes == 0
async def five():
    memstow.follow_tasks()
    return await memstow.follow(asyncio.sleep(0, 5), owner)
assert asyncio.run(five()) == 5 and memstow.carry(len)("abc") == 3
import memstow.comfy
assert memstow.comfy.keep(1) is memstow.comfy.stow(2) is memstow.comfy.free_after_run(3) is False
assert memstow.comfy.run_ended("ok") is False
'''
used = subprocess.run([sys.executable, "-c", USES], env={"PYTHONPATH": str(support.ROOT / "tools/python")}, text=True,
                      capture_output=True)
assert used.returncode == 0 and used.stderr.count("not started under memstow") == 1 and not used.stdout, used
imported = subprocess.run([sys.executable, "-c", "import memstow, sys; assert 'torch' not in sys.modules"], text=True,
                          env={"PYTHONPATH": str(support.ROOT / "tools/python")}, capture_output=True)
assert imported.returncode == 0 and not imported.stderr, imported
# memstow.py works without the rest of its package, and memstow.comfy can be the first module that a program imports
(support.HERE / "alone").mkdir()
shutil.copy(support.ROOT / "tools/python/memstow.py", support.HERE / "alone")
alone = "import memstow; assert not hasattr(memstow, 'comfy') and memstow.trigger() == 0"
support.run(sys.executable, "-c", alone, env={"PYTHONPATH": str(support.HERE / "alone")})
first = support.run(sys.executable, "-c", "from memstow.comfy import keep; keep(1), keep(2)",
                    env={"PYTHONPATH": str(support.ROOT / "tools/python")})
assert first.stderr.count("not started under memstow") == 1, first
