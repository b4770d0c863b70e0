#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# long
"""A real ComfyUI under memstow, with models that stay. First, two models are used in turn, and the node cache keeps
both by design: this is no leak. Then a model is to be freed after each run, but a node keeps the inner model after its
patcher is gone: this is a leak of that model. A search of ten seconds of processor time (--holders) names the
holder of the model."""
import sys

import support
from _leaks import brief, leaks

sys.path.insert(0, str(support.ROOT / "tests/comfyui"))
from _comfy import MB, Comfy, link, policy, sample, unet # noqa: E402

RUNS, CACHE = 12, 12 # node results; the cache is full after some runs
KEEP_INNER = '''
inner = []
class KeepInner:
    RETURN_TYPES, FUNCTION, CATEGORY = ("MODEL",), "keep", "test"
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"model": ("MODEL",), "seed": ("INT", {"default": 0, "max": 2**40})}}
    def keep(self, model, seed):
        inner.append(model.model)
        return (model,)
NODE_CLASS_MAPPINGS = {"KeepInner": KeepInner}
'''


def switching(seed):
    return {"unet": unet(("tiny.safetensors", "other.safetensors")[seed % 2]), **sample("unet", seed)}


def keeping(seed):
    kept = {"class_type": "KeepInner", "inputs": {"model": link("policy"), "seed": seed}}
    return {"unet": unet(), "policy": policy("unet", "free"), "kept": kept, **sample("kept", seed)}


with Comfy("memstow", ffn=8192, before=(KEEP_INNER,), arguments=("--cache-lru", CACHE)) as comfy:
    for seed in range(RUNS):
        comfy.run(switching(1000 + seed))
    document = leaks(comfy.pid())
    models = support.report(comfy.pid())["owners"]
    kept = [o for o in models if o["kind"] == "model" and o["live_bytes"] > 4 * MB]
    print(document["runs"], document["not_leaks"], [(o["origin"], o["live_bytes"]) for o in kept])
    assert not document["found"] and document["runs"]["judged"] >= 8, (brief(document), document["runs"])
    assert {o["origin"] for o in kept} == {"tiny.safetensors", "other.safetensors"}, kept

    for seed in range(RUNS):
        comfy.run(keeping(2000 + seed))
    document = leaks(comfy.pid(), "--holders")
    print(brief(document), document["runs"])
    assert not [r for r in document["retired"] if r["leak"]], "the inner models live"
    found = document["leaks"]
    assert {(l["model"], l["origin"], l["retired"])
            for l in found} == {("MODEL WAN21", "tiny.safetensors", False)}, brief(document)
    assert sum(l["bytes_per_run"] for l in found) >= comfy.weights * 0.9, (brief(document), comfy.weights)
    assert all(any("aaa_other.inner[" in holder for holder in l["holders"])
               for l in found), [l["holders"] for l in found]
