#!/usr/bin/env python3
# needs: comfyui
# timeout: 240
# alone
"""A real ComfyUI under memstow: fifty runs that each load a UNET, free it, and keep a CLIP grow the ledger and RSS by less
than 1 MB, and leave no dead identity behind."""
import support
from _comfy import MB, Comfy, link, mixed, need_real

need_real("trigger_begin", "trigger_end", "trace", "decisions")
comfy = Comfy("memstow", ffn=4096)


def workflow(seed):
    """The text stays the same: its encoding, and the picture, are not what is in question."""
    found = mixed(seed)
    found["text"]["inputs"]["text"] = "a text"
    del found["image"], found["image_digest"]
    found["vae_digest"] = {"class_type": "Digest", "inputs": {"value": link("vae")}}
    return found


def live():
    return support.report(comfy.pid())["totals"]["live_bytes"]


try:
    for seed in range(15): # caches of libraries fill
        comfy.run(workflow(seed))
    ledger, rss, owner = live(), comfy.rss(), comfy.owners()["CLIP"]["id"]
    for seed in range(50):
        comfy.run(workflow(100 + seed))
    grown, resident = live() - ledger, comfy.rss() - rss
    print(f"grown by {grown} bytes of the ledger, {resident} of RSS")
    assert grown < MB and resident < MB, (grown, resident)
    assert set(comfy.owners()) == {"CLIP", "VAE"} and comfy.owners()["CLIP"]["id"] == owner
    models = [o for o in support.report(comfy.pid())["owners"] if o["kind"] == "model" and o["live_bytes"] > MB]
    assert len(models) <= 2, models
except BaseException:
    print(comfy.log()[-3000:])
    raise
finally:
    comfy.stop()
