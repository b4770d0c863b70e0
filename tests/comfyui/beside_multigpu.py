#!/usr/bin/env python3
# needs: comfyui comfyui-multigpu
# timeout: 600
"""The real ComfyUI-MultiGPU beside the pack, under memstow, in two versions. Version 2.5.0 sets MultiGPU's flag on the
models that its loaders return. Version 2.5.10 sets the flag on all models that are loaded when one of its loaders runs.
When a run ends, a model whose flag is true is freed, unless a policy keeps it. This holds also if the run used a LoRA's
clone of the model. The trace says on which object the pack read the flag. A model that is to be kept survives the two
buttons of ComfyUI that free models, and MultiGPU's own clean-up. To test other versions by hand, set
COMFYUI_MULTIGPU=DIR:DIR…"""
import os, pathlib

import support
from _comfy import Comfy, link, mixed, need_real, unet

DEPENDENCIES = support.ROOT / "build/deps"
found = os.environ.get("COMFYUI_MULTIGPU", "").split(":")
VERSIONS = [pathlib.Path(folder) for folder in found
            if folder] or sorted((DEPENDENCIES / "comfyui-multigpu").glob("2*"))
if not VERSIONS:
    support.skip("ComfyUI-MultiGPU is not installed: git could not fetch it")
need_real("trigger_begin", "trigger_end", "trace", "decisions")

PATHS = {"__init__.py": "NODE_CLASS_MAPPINGS = {}",
         "prestartup_script.py": f"import sys; sys.path.append('{DEPENDENCIES / 'accelerate'}')"}
CLEANS = '''
import sys
class CleanUp:
    RETURN_TYPES, FUNCTION, CATEGORY, OUTPUT_NODE = (), "run", "test", True
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"value": ("LATENT",)}}
    def run(self, value):
        module = next(m for name, m in list(sys.modules.items())
                      if "MultiGPU" in name and hasattr(m, "force_full_system_cleanup"))
        assert "Cleanup requested" in module.force_full_system_cleanup("the test asks")
        return ()
NODE_CLASS_MAPPINGS = {"CleanUp": CleanUp}
'''


def by_multigpu(workflow, **options):
    """The workflow with MultiGPU's loaders instead of ComfyUI's. options: more inputs for each loader, by the name of
    its node."""
    for name, node in workflow.items():
        if node["class_type"] in ("UNETLoader", "CLIPLoader", "VAELoader"):
            node["class_type"] += "DisTorch2MultiGPU"
            device = {"device": "cpu"} if name == "clip" else {"compute_device": "cpu"}
            node["inputs"].update(device, virtual_vram_gb=0.0, donor_device="cpu", **options.get(name, {}))
    return workflow


def behind_lora(workflow):
    """Gives the sampler's model a LoRA, so that ComfyUI loads a clone of the model."""
    workflow["lora"] = {"class_type": "LoraLoaderModelOnly", "inputs": {
        "model": workflow["sample"]["inputs"]["model"], "lora_name": "tiny.safetensors", "strength_model": 0.5}}
    workflow["sample"]["inputs"]["model"] = link("lora")
    return workflow


def freed(comfy):
    return {o["type"]: o["rule"] for o in comfy.report()["freed"]}


def read(comfy, owner):
    return [line for line in comfy.lines("READ") if line["owner"] == owner][-1]


def ids(comfy):
    return {kind: owner["id"] for kind, owner in comfy.owners().items()}


def kept_by_flag(comfy):
    """In MultiGPU 2.5.0, the input keep_loaded of each loader says whether the loader's model is to be kept."""
    comfy.run(behind_lora(by_multigpu(mixed(1, None, None), clip={"keep_loaded": True}, vae={"keep_loaded": False},
                                      unet={"keep_loaded": False})))
    rules = freed(comfy)
    assert set(rules) == {"MODEL",
                          "VAE"} and all("_mgpu_unload_distorch_model" in rule for rule in rules.values()), rules
    assert "cloned from" in rules["MODEL"] and "on the patcher" in rules["VAE"], rules
    model = next(o["owner"] for o in comfy.report()["freed"] if o["type"] == "MODEL")
    line = read(comfy, model)
    assert (line["rule"], line["on_patcher"],
            line["on_inner"]) == ("flag", True, True) and line["from"] in line["parents"], line
    clip = comfy.owners()["CLIP"]
    assert (clip["policy"], read(comfy, clip["id"])["rule"]) == ("keep", "flag"), clip
    return clip["id"]


def marked(comfy):
    """In MultiGPU from 2.5.1 on, a loader with eject_models marks all models that are loaded when the loader runs."""
    comfy.run(
        by_multigpu(mixed(1, None, "keep"), **{name: {"eject_models": False}
                                               for name in ("unet", "clip", "vae")}))
    assert not freed(comfy) and set(comfy.owners()) == {"MODEL", "CLIP", "VAE"}, comfy.owners()
    before = ids(comfy)
    workflow = mixed(2, None, "keep")
    workflow["unet"] = unet("other.safetensors")
    comfy.run(
        by_multigpu(workflow, unet={"eject_models": True}, clip={"eject_models": False}, vae={"eject_models": False}))
    rules = freed(comfy)
    assert rules.get("VAE", "").endswith("on the inner model") and "CLIP" not in rules, rules
    seen = {line["owner"]: (line["patcher"], line["policy"], line["node"]) for line in comfy.lines("SET")
            if line.get("flag")}
    assert seen[before["VAE"]] == seen[before["CLIP"]] == (0, "free", "unet"), seen
    assert ids(comfy)["MODEL"] != before["MODEL"] and comfy.owners()["MODEL"]["policy"] is None, comfy.owners()
    assert ids(comfy)["CLIP"] == before["CLIP"] and comfy.owners()["CLIP"]["rule"] == "patcher" # a policy counts first
    line = read(comfy, before["CLIP"])
    assert (line["rule"], line["on_patcher"], line["on_inner"],
            line["from"]) == ("patcher", None, True, line["inner"]), line
    return before["CLIP"]


for version in VERSIONS:
    with Comfy("memstow", name=f"comfyui-{version.name}", packs={"ComfyUI-MultiGPU": version, "accelerate": PATHS},
               before=("NODE_CLASS_MAPPINGS = {}", CLEANS)) as comfy:
        inputs = (comfy.get("/object_info/VAELoaderDisTorch2MultiGPU")
                  or {}).get("VAELoaderDisTorch2MultiGPU", {}).get("input", {})
        assert inputs, comfy.log()[-6000:]
        is_of_loaders = "keep_loaded" in inputs["optional"]
        keeper = (kept_by_flag if is_of_loaders else marked)(comfy)
        for flags in ({"unload_models": True}, {"unload_models": True, "free_memory": True}):
            comfy.free(**flags)
            assert ids(comfy)["CLIP"] == keeper, comfy.owners()
        kept = {"keep_loaded": True} if is_of_loaders else {"eject_models": False}
        workflow = by_multigpu(mixed(3, "stow", "keep"), unet=kept, clip=kept, vae=kept)
        workflow["clean"] = {"class_type": "CleanUp", "inputs": {"value": link("sample")}}
        comfy.run(workflow)
        comfy.settled()
        assert ids(comfy)["CLIP"] == keeper and comfy.owners()["CLIP"]["is_loaded"], comfy.owners()
        assert "MODEL" in comfy.owners() and comfy.owners()["MODEL"]["stowed_bytes"], comfy.owners()
        assert not comfy.lines("LOST"), comfy.lines("LOST")
        comfy.check_trace()
