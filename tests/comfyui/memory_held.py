#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# alone
"""A real ComfyUI under memstow, with a node that keeps a model that is to be freed. The report, the log and the trace
name the variable that holds the model, and say how many bytes the model has. The report of the process names the code
that allocated these bytes. When the node lets the model go, the memory comes back."""
import support
from _comfy import MB, Comfy, held, need_real

need_real("trigger_begin", "trigger_end", "trace", "decisions")
comfy = Comfy("memstow", ffn=32_768)

with comfy:
    comfy.run(held(True, 1))
    model = next(o for o in comfy.report()["owners"] if o["type"] == "MODEL")
    assert model["action"] == "free" and model["after_bytes"] >= comfy.weights, model
    assert any("test_nodes.held[0]['model']" in why for why in model["why"]), model["why"]
    assert "test_nodes.held[0]['model']" in comfy.log() and not any("node cache" in why for why in model["why"])
    lines = [line for line in comfy.lines("HELD") if line["owner"] == model["owner"]]
    assert lines and any("test_nodes.held" in holder for holder in lines[-1]["holders"]), lines
    assert comfy.report()["trigger_seconds"] < 10, comfy.report()["trigger_seconds"]
    assert "looked for on the worker thread" in comfy.log() and "on another thread" not in comfy.log()
    report = support.report(comfy.pid(), "--by=model")
    site = max((s for s in report["sites"] if (s.get("model") or "") == model["name"]), key=lambda s: s["live_bytes"])
    assert any((frame["function"] or "").startswith("UNETLoader.load_unet") for frame in site["stack"]), site
    support.memstow("snapshot", comfy.pid(), "-o", "held.mst")
    text = support.memstow("decisions", "held.mst").stdout
    assert "test_nodes.held" in text, text[-2000:]
    rss = comfy.rss()
    comfy.run(held(False, 2))
    assert "MODEL" not in comfy.owners() and rss - comfy.rss() >= comfy.weights - 16 * MB, (rss, comfy.rss())
