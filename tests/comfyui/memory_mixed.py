#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
"""A real ComfyUI runs under memstow, with a UNET of more than 256 MB. When a run ends, the memory of models that are to
be freed is given back. The ledger and RSS both show this. The cases are:

- The models come from separate loaders, from one checkpoint, or from an asynchronous loader.
- The model has a LoRA.
- A node fails, a node runs out of memory, or the run is interrupted.

The next run finds the other models loaded. The run report has the live memory of each model in each node and run:
before, at the peak and after. Memory of async nodes that take turns counts for the right node."""
import json

import support
from _comfy import MB, Comfy, checkpoint, link, mixed, need_real, sample

need_real("trigger_begin", "trigger_end", "trace", "decisions")
comfy = Comfy("memstow", ffn=140_000, env={"MEMSTOW_POLICY_MODEL": "free"})


def is_back(least=0.95):
    """Asserts that the UNET of the last run is gone, and that its memory was given back."""
    freed = [o for o in comfy.report()["freed"] if o["type"] == "MODEL"]
    assert len(freed) == 1 and "MODEL" not in comfy.owners(), comfy.report()
    assert freed[0]["before_bytes"] >= comfy.weights and freed[0]["after_bytes"] <= 0.05 * comfy.weights, freed
    rss = comfy.report()["rss"]
    assert rss["peak_bytes"] - rss["after_bytes"] >= least * comfy.weights, rss


def shares(owner):
    """Returns the shares of a model in the last report, one for each node and run: the node's name, the run's name, and
    the bytes before, at the peak and after."""
    return [(s["node_name"], s["run_name"], s["before_bytes"], s["peak_bytes"], s["after_bytes"])
            for s in comfy.report()["shares"] if s["model"] == owner]


def is_reported(number):
    """Asserts that the report of the last run shows the UNET's memory: its loader allocated it, and it was freed later.
    The figures of the process show the same."""
    report = comfy.report()
    freed = next(o for o in report["freed"] if o["type"] == "MODEL")
    assert freed["run_before_bytes"] == 0 and freed["run_peak_bytes"] >= comfy.weights, freed
    node, run, before, most, after = shares(freed["owner"])[0]
    assert (node, run, before) == ("UNETLoader #unet", f"run {number}", 0), shares(freed["owner"])
    assert comfy.weights <= most and after <= 0.05 * comfy.weights, (most, after)
    loader = next(n for n in report["nodes"] if n["node"] == "unet")
    # These figures count the whole process. Python may give back some of its own arenas (1 MiB each) while the model is
    # loaded, so the process may grow by up to 4 MB less than the model's weights.
    assert loader["peak_bytes"] >= loader["after_bytes"] >= loader["before_bytes"] + comfy.weights - 4 * MB, loader
    live = report["live"]
    assert live["peak_bytes"] >= live["before_bytes"] + comfy.weights, live
    assert live["peak_bytes"] >= live["after_bytes"] + 0.95 * comfy.weights, live


def cached(done):
    return set(dict(done["status"]["messages"])["execution_cached"]["nodes"])


with comfy:
    assert comfy.weights >= 256 * MB
    comfy.run(mixed(1))
    is_back()
    is_reported(1)
    kept = comfy.owners()
    assert set(kept) == {"CLIP", "VAE"} and kept["CLIP"]["live_bytes"] >= 230 * MB, kept
    clip = next(o for o in comfy.report()["owners"] if o["type"] == "CLIP")
    assert clip["run_before_bytes"] == 0 and clip["run_peak_bytes"] >= clip["after_bytes"] == clip["before_bytes"], clip
    done = comfy.run(mixed(2))
    is_back()
    is_reported(2)
    node, run, before, most, after = shares(kept["CLIP"]["id"])[0] # loaded in the run before
    assert (node, run) == ("CLIPLoader #clip",
                           "run 1") and 230 * MB <= after <= before <= most, (node, run, before, most, after)
    clip = next(o for o in comfy.report()["owners"] if o["type"] == "CLIP")
    assert abs(clip["run_before_bytes"] - clip["after_bytes"]) < MB, clip
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

    lora = {"class_type": "LoraLoaderModelOnly",
            "inputs": {"model": link("unet_policy"), "lora_name": "tiny.safetensors", "strength_model": 0.5}}
    workflow = {**mixed(6), "lora": lora}
    workflow["sample"]["inputs"]["model"] = link("lora")
    comfy.run(workflow)
    is_back()

    # Async nodes take turns. Each node has the memory that it allocated. The memory of a model belongs to its loader.
    counts = {"one": 20, "two": 30, "three": 40}
    plants = {name: {"class_type": "AsyncPlant", "inputs": {"size": 300_000, "blocks": count}} for name,
              count in counts.items()}
    digests = {f"{name}_digest": {"class_type": "Digest", "inputs": {"value": link(name)}} for name in plants}
    load = {"load": {"class_type": "AsyncLoad", "inputs": {"name": "tiny.safetensors"}}, **sample("load", 7)}
    comfy.run({
        **plants, **digests, **load, **{name: mixed(6)[name]
                                        for name in ("clip", "clip_policy", "text", "text_digest")}
    })
    is_back()
    live = {o["origin"]: o["live_bytes"]
            for o in json.loads(support.memstow("owners", comfy.pid(), "--json").stdout)["owners"]
            if o["kind"] == "node"}
    for name, count in counts.items():
        assert 300_000 * count <= live[f"node {name}"] < 300_000 * count + 100_000, (name, live[f"node {name}"])
        share = next(s for s in comfy.report()["shares"] if s["node_name"] == f"AsyncPlant #{name}")
        assert share["model"] is None and share["before_bytes"] == 0, share
        assert 300_000 * count <= share["after_bytes"] < 300_000 * count + 100_000, share

    # UNET and VAE of one checkpoint: when the UNET goes, the VAE stays. When the UNET is loaded again, the VAE is not.
    comfy.run(checkpoint(mixed(7)))
    is_back()
    vae = comfy.owners()["VAE"]
    assert vae["origin"] == "tiny.safetensors" and vae["id"] != kept["VAE"]["id"] and vae["policy"] is None
    done = comfy.run(checkpoint(mixed(8)))
    is_back()
    assert comfy.owners()["VAE"]["id"] == vae["id"] and comfy.owners()["CLIP"]["id"] == kept["CLIP"]["id"]
    assert len(comfy.get("/memstow/owners")["owners"]) == 2
    comfy.check_trace()
