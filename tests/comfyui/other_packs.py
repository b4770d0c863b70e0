#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""Two other packs wrap the same functions of ComfyUI as ours. One is installed before ours, the other after it. Every
wrapper is called, policies hold, and failures are reported.

A third pack sets the flag of ComfyUI-MultiGPU: on patchers, on inner models, on a model before a LoRA clones it, and on
a CLIP and a VAE that its own loaders return. A model whose flag is true has the policy free; one whose flag is false
has the policy keep. The test beside_multigpu uses the real MultiGPU."""
from _comfy import Comfy, around_pack, link, mixed, sample, unet

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
import copy, nodes
def override(loader):
    class Override(loader):
        FUNCTION, CATEGORY = "override", "test"
        @classmethod
        def INPUT_TYPES(cls):
            inputs = copy.deepcopy(loader.INPUT_TYPES())
            inputs["optional"] = {**inputs.get("optional", {}), "keep_loaded": ("BOOLEAN", {"default": True})}
            return inputs
        def override(self, *arguments, keep_loaded=True, **options):
            found = getattr(super(), loader.FUNCTION)(*arguments, **options)
            for holder in (found[0].patcher, found[0].patcher.model):
                holder._mgpu_unload_distorch_model = not keep_loaded
            return found
    return Override
NODE_CLASS_MAPPINGS = {"Flag": Flag, "CLIPLoaderFlag": override(nodes.CLIPLoader),
                       "VAELoaderFlag": override(nodes.VAELoader)}
'''
comfy = Comfy(
    pack=False,
    before=(around_pack(FLAGS + WRAPS.replace("NAME", "the one before"), WRAPS.replace("NAME", "the one after")),))


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

    # The flag is set on a model before a LoRA makes a clone of it. The loaded object is the clone, which has no flag.
    # The flag of the original counts.
    lora = {"class_type": "LoraLoaderModelOnly",
            "inputs": {"model": link("flag"), "lora_name": "tiny.safetensors", "strength_model": 0.5}}
    comfy.run({**flagged(False, True, 7), "lora": lora, **sample("lora", 7)})
    freed = comfy.report()["freed"]
    assert [(o["type"], o["policy"]) for o in freed] == [("MODEL", "free")] and "cloned from" in freed[0]["rule"], freed
    read = [line for line in comfy.lines("READ") if line["owner"] == freed[0]["owner"]][-1]
    seen = [line for line in comfy.lines("SET") if line["owner"] == freed[0]["owner"] and "flag" in line
            and line["patcher"]]
    assert read["rule"] == "flag" and read["from"] in read["parents"] and read["on_patcher"] is True, read
    assert [(line["patcher"], line["policy"], line["node"])
            for line in seen][-1] == (read["from"], "free", "flag"), seen

    # Loaders of another pack set the flag on the models that they return.
    def loaded_by(seed, keep_clip, keep_vae):
        workflow = mixed(seed, "keep", None)
        for name, keeps in (("clip", keep_clip), ("vae", keep_vae)):
            workflow[name]["class_type"] += "Flag"
            workflow[name]["inputs"]["keep_loaded"] = keeps
        return workflow
    def of_type(owners):
        return {(o["type"], o["policy"]) for o in owners if "_mgpu" in o["rule"]}

    comfy.run(loaded_by(8, True, False))
    clip = comfy.owners()["CLIP"]
    assert (of_type([clip]) == {("CLIP", "keep")}
            and of_type(comfy.report()["freed"]) == {("VAE", "free")}), comfy.report()["freed"]
    workflow = loaded_by(9, False, True)
    workflow["lora"] = {"class_type": "LoraLoader",
                        "inputs": {"model": link("unet"), "clip": link("clip"), "strength_model": 0.5,
                                   "lora_name": "tiny.safetensors", "strength_clip": 0.5}}
    workflow["text"]["inputs"]["clip"] = link("lora", 1)
    comfy.run(workflow)
    assert (of_type(comfy.report()["freed"]) == {("CLIP", "free")}
            and of_type([comfy.owners()["VAE"]]) == {("VAE", "keep")})
    assert comfy.owners()["CLIP"]["id"] == clip["id"], "what was to be kept is gone"
    assert not comfy.lines("LOST")
