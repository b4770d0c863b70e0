#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# alone
"""A real ComfyUI under memstow, with a UNET of more than 256 MB: the memory of what is to be freed is back when the run has
ended, by the ledger and by RSS, from loaders of their own and from one checkpoint; the others are found loaded by the next
run; also after a node that fails, an interrupt and a node that runs out of memory, and with a LoRA."""
import support
from _comfy import MB, Comfy, checkpoint, link, mixed, need_real

need_real("trigger_begin", "trigger_end", "trace", "decisions")
comfy = Comfy("memstow", ffn=140_000, env={"MEMSTOW_POLICY_MODEL": "free"})


def is_back(least=0.95):
    """The UNET of the run that has just ended is gone, and what it had is back."""
    freed = [o for o in comfy.report()["freed"] if o["type"] == "MODEL"]
    assert len(freed) == 1 and "MODEL" not in comfy.owners(), comfy.report()
    assert freed[0]["before_bytes"] >= comfy.weights and freed[0]["after_bytes"] <= 0.05 * comfy.weights, freed
    rss = comfy.report()["rss"]
    assert rss["peak_bytes"] - rss["after_bytes"] >= least * comfy.weights, rss


def cached(done):
    return set(dict(done["status"]["messages"])["execution_cached"]["nodes"])


with comfy:
    assert comfy.weights >= 256 * MB
    comfy.run(mixed(1))
    is_back()
    kept = comfy.owners()
    assert set(kept) == {"CLIP", "VAE"} and kept["CLIP"]["live_bytes"] >= 230 * MB, kept
    done = comfy.run(mixed(2))
    is_back()
    assert {"clip", "clip_policy", "vae"} <= cached(done)
    assert {t: o["id"] for t, o in comfy.owners().items()} == {t: o["id"] for t, o in kept.items()}

    for kind, outcome, seed in (("Fail", "failed", 3), ("RunOut", "out-of-memory", 4), ("Slow", "cancelled", 5)):
        workflow = mixed(seed)
        workflow["fails"] = {"class_type": kind, "inputs": {"value": link("sample"), "seed": seed}}
        workflow["digest"]["inputs"]["value"] = workflow["image"]["inputs"]["samples"] = link("fails")
        prompt = comfy.queue(workflow)
        if kind == "Slow":
            support.wait_for(lambda: comfy.owners().get("MODEL", {}).get("is_loaded"), 60, "the model")
            assert comfy.status_of("/interrupt", b"{}") == 200
        comfy.settle(comfy.wait(prompt))
        assert comfy.report()["outcome"] == outcome, comfy.report()
        is_back()

    lora = {"class_type": "LoraLoaderModelOnly", "inputs": {"model": link("unet_policy"), "lora_name": "tiny.safetensors",
                                                            "strength_model": 0.5}}
    workflow = {**mixed(6), "lora": lora}
    workflow["sample"]["inputs"]["model"] = link("lora")
    comfy.run(workflow)
    is_back()

    # of one checkpoint: the VAE stays when the UNET goes, and is not loaded again with it
    comfy.run(checkpoint(mixed(7)))
    is_back()
    vae = comfy.owners()["VAE"]
    assert vae["origin"] == "tiny.safetensors" and vae["id"] != kept["VAE"]["id"] and vae["policy"] is None
    done = comfy.run(checkpoint(mixed(8)))
    is_back()
    assert comfy.owners()["VAE"]["id"] == vae["id"] and comfy.owners()["CLIP"]["id"] == kept["CLIP"]["id"]
    assert len(comfy.get("/memstow/owners")["owners"]) == 2
    comfy.check_trace()
