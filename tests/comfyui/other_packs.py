#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""Packs that wrap the same functions of ComfyUI, one installed before ours and one after: everybody is called, policies hold,
and failures are still told. A third sets MultiGPU's flag, on patchers or on inner models. Ours can be taken away again."""
import support
from _comfy import Comfy, mixed, sample, unet

WRAPS = '''
import logging
import comfy.model_management as mm
import execution

def wrap(holder, name):
    before = getattr(holder, name)
    def after(*arguments, **options):
        logging.info("NAME sees %s", name)
        return before(*arguments, **options)
    setattr(holder, name, after)

wrap(mm, "unload_all_models")
wrap(mm, "soft_empty_cache")
def wrap_execution(before):
    async def execute_async(self, *arguments, **options):
        logging.info("NAME sees execute_async")
        try:
            return await before(self, *arguments, **options)
        finally:
            mm.soft_empty_cache()
    return execute_async
execution.PromptExecutor.execute_async = wrap_execution(execution.PromptExecutor.execute_async)
NODE_CLASS_MAPPINGS = {}
'''
FLAGS = '''
class Flag:
    RETURN_TYPES, FUNCTION, CATEGORY = ("MODEL",), "run", "test"
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"model": ("MODEL",), "inner": ("BOOLEAN", {}), "value": ("BOOLEAN", {})}}
    def run(self, model, inner, value):
        setattr(model.model if inner else model, "_mgpu_unload_distorch_model", value)
        return (model,)
NODE_CLASS_MAPPINGS = {"Flag": Flag}
'''
# ComfyUI loads packs in the order of the folder, which nobody can choose: this one loads ours in the middle.
OURS = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("memstow_pack", "PACK/__init__.py")
module = sys.modules["memstow_pack"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
NODE_CLASS_MAPPINGS = {"Flag": Flag, **module.NODE_CLASS_MAPPINGS}
""".replace("PACK", str(support.ROOT / "tools/comfyui"))
comfy = Comfy(pack=False, before=(FLAGS + WRAPS.replace("NAME", "the one before") + WRAPS.replace("NAME", "the one after")
                                  .replace("wrap(mm", OURS + "wrap(mm", 1).replace("NODE_CLASS_MAPPINGS = {}", ""),))


def flagged(inner, value, seed):
    flag = {"class_type": "Flag", "inputs": {"model": ["unet", 0], "inner": inner, "value": value}}
    return {"unet": unet(), "flag": flag, **sample("flag", seed)}


with comfy:
    comfy.run(mixed(1))
    assert set(comfy.owners()) == {"CLIP", "VAE"} and comfy.report()["outcome"] == "ok"
    log = comfy.log()
    assert "the one before sees execute_async" in log and "the one after sees execute_async" in log
    comfy.run(mixed(2, unet_policy="stow"))
    comfy.free(unload_models=True)
    assert {t for t, o in comfy.owners().items() if o["is_loaded"]} == {"CLIP", "VAE"}
    assert comfy.log().count("the one after sees unload_all_models") == 1
    failing = mixed(3)
    failing["fails"] = {"class_type": "Fail", "inputs": {"value": ["sample", 0], "seed": 1}}
    failing["digest"]["inputs"]["value"] = ["fails", 0]
    comfy.run(failing, status="error")
    assert comfy.report()["outcome"] == "failed" and "MODEL" not in comfy.owners()

    for inner, value, seed in ((True, True, 4), (False, True, 5)):
        comfy.run(flagged(inner, value, seed))
        freed = comfy.report()["freed"]
        assert [(o["type"], o["policy"]) for o in freed] == [("MODEL", "free")] and "_mgpu" in freed[0]["rule"], freed
    comfy.run(flagged(False, False, 6))
    assert comfy.owners()["MODEL"]["policy"] == "keep"
