#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# alone
"""A real ComfyUI under memstow: fifty runs that each load a UNET, free it, and keep a CLIP grow the ledger by less than 1 MB,
and by at most two arenas of Python's (1 MB each; ComfyUI's history is in them), and RSS, without what memstow itself has, by
less than 4 MB; they leave no dead identity behind."""
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


def held():
    """The ledger's live bytes without Python's arenas; those; RSS without what memstow itself has; and that."""
    support.memstow("snapshot", comfy.pid(), "-o", "now.mst")
    report = support.report("now.mst", "--match=_PyObject_ArenaMmap")
    arenas = sum(site["live_bytes"] for site in report["sites"])
    report = support.report("now.mst")
    own = report["residency"]["memstow_bytes"]
    return report["totals"]["live_bytes"] - arenas, arenas, report["residency"]["rss_bytes"] - own, own


try:
    for seed in range(30): # caches of libraries fill
        comfy.run(workflow(seed))
    before, owner = held(), comfy.owners()["CLIP"]["id"]
    for seed in range(50):
        comfy.run(workflow(100 + seed))
    ledger, arenas, rss, own = (now - then for now, then in zip(held(), before))
    print(f"grown by {ledger} bytes of the ledger and {arenas} of arenas, {rss} of RSS; memstow itself by {own}")
    assert ledger < MB and arenas <= 2 * MB and rss < 4 * MB, (ledger, arenas, rss, own)
    assert set(comfy.owners()) == {"CLIP", "VAE"} and comfy.owners()["CLIP"]["id"] == owner
    # An arena that Python took in the scope of a model is that model's.
    models = [o for o in support.report(comfy.pid())["owners"] if o["kind"] == "model" and o["live_bytes"] > 2 * MB]
    assert len(models) <= 2, models
except BaseException:
    print(comfy.log()[-3000:])
    raise
finally:
    comfy.stop()
