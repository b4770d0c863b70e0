#!/usr/bin/env python3
# needs: comfyui
# timeout: 900
# long
"""Models in loops. The loader of a carried MODEL runs once. The result is the same whether the model is kept, stowed or
freed between iterations, and also if a client posts /free while the loop runs. The report says that a loop holds the
model. When the loop is forgotten, the model can go. If a loop has a prefix or keeps its values on disk, a model at a
wildcard port gives a clear error that names the port."""
import json

from _comfy import link, policy, sample, unet
import _loops
from _loops import Loops, node, port

_loops.NODES += '''
import nodes
load_unet = nodes.UNETLoader.load_unet
def counted(self, *arguments, **options):
    ran["UNETLoader"] += 1
    return load_unet(self, *arguments, **options)
nodes.UNETLoader.load_unet = counted
'''

def begin(word):
    graph = {"unet": unet(), "number": node("AddInts", a=0, b=0), "n": port("n", "number"), "new": node(
        "EmptyHunyuanLatentVideo", width=64, height=64, length=1, batch_size=1), "latent": port("latent", "new")}
    if word:
        graph["policy"] = policy("unet", word)
    return graph | {"model": port("model", "policy" if word else "unet")}


STEP = {"model": port("model"), "latent in": port("latent"), "n in": port("n"), **sample("model")}
del STEP["latent"], STEP["digest"]
STEP["sample"]["inputs"].update(latent_image=link("latent in"), seed=link("n in"))
STEP |= {"latent out": port("latent", "sample"), "add": node("AddInts", a=link("n in"), b=1), "n out": port("n", "add")}
LOOP = {"inputs": {"n": -1}, "iterations": 5, "when": [{"port": "n", "op": "==", "value": -1}, None]}

with Loops() as comfy:
    digests = {}
    for word in (None, "keep", "stow", "free"):
        comfy.ran()
        name = comfy.begin(begin(word), STEP, name=f"with {word}", **LOOP)
        if word == "keep":
            assert comfy.status_of("/free", json.dumps({"unload_models": True, "free_memory": True}).encode()) == 200
        comfy.over(name, values=False)
        comfy.settled()
        found = comfy.loop(name)
        assert found["state"] == "done" and found["values_of_ports"]["n"] == 5, found
        ran = comfy.ran()
        assert ran["UNETLoader"] == 1, (word, ran)
        models = [o for o in comfy.get("/memstow/owners")["owners"] if o["type"] == "MODEL"]
        assert len(models) == 1, (word, models)
        value = next(v for v in found["values"] if v["id"] == "model")
        assert value["where"] == "reference" and "weights" in value["why"], value
        if word:
            comfy.settled()
            line = next(o for o in comfy.report()["owners"] if o["type"] == "MODEL")
            assert line["action"] == word, line
            if word == "free":
                comfy.held_by_loop(MODEL="port model of loop with free")
        read = {"read": node("DiscomfortLoopResult", loop=name, unique_id="latent"),
                "show": node("Fingerprint", value=link("read"))}
        digests[word] = comfy.run(read)["outputs"]["show"]["digest"]
        comfy.request("DELETE", f"/memstow/loops?name=with%20{word}")
        comfy.free(unload_models=True, free_memory=True)
        comfy.get("/test/tidy")
        if word in (None, "free"):
            assert not [o for o in comfy.get("/memstow/owners")["owners"]
                        if o["type"] == "MODEL"], "nobody holds it any more"
        elif word:
            comfy.run({"unet": unet(), "policy": policy("unet", "free"), **sample("policy", 99)})
    assert len({json.dumps(d) for d in digests.values()}) == 1, digests
    # A wildcard port takes any type, so it turns out only in the first iteration that the value is a model. The loop
    # fails then.
    wild = {"unet": unet(), "wire": node("DiscomfortLoopResult", loop="holder", unique_id="model"),
            "out": port("m", "wire")}
    holder = comfy.begin(begin(None), name="holder")
    assert comfy.over(holder)["state"] == "done"
    for options in ({"persist_prefix": "p"}, {"use_ram": False}):
        found = comfy.loop_of({name: wild[name] for name in ("wire", "out")}, state="failed", **options)
        assert all(words in found["error"] for words in ("iteration 1, workflow 1", "'m'", "weights")), found
