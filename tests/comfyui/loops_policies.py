#!/usr/bin/env python3
# needs: comfyui
# timeout: 600
# long
"""Policies of a loop's values in ComfyUI. When a run ends, a value with the policy stow goes to a file. A value with
the policy keep or free, or without a policy, stays in memory. The next iterations read and replace the values. The loop
has the same result as a loop without policies. Under pressure, values of lower priority go first, and only as many as
are needed."""
from _comfy import link
import _loops
from _loops import Loops, node, port

_loops.NODES += '''
import json
def store_of(name):
    return sys.modules["memstow_pack.loops.nodes"].loops().find(name).store
@node(("INT",), number=INT, name=STRING, policies=STRING)
def SetPolicies(self, number, name, policies):
    for id, policy in json.loads(policies).items() if number == 1 else ():
        store_of(name).set_policy(policy, id=id)
    return (number,)
NODE_CLASS_MAPPINGS["SetPolicies"] = SetPolicies
def owners_of(name):
    return {row["id"]: row["owner"] for row in store_of(name).info()}
@server.PromptServer.instance.routes.post("/test/pressure")
async def _pressure(request):
    import memstow
    body = await request.json()
    owners = owners_of(body["name"])
    for id, priority in body["priorities"].items():
        memstow.restore(owners[id])
        store_of(body["name"]).set_policy("stow", priority, id)
    decisions = memstow.decide("pressure", "the test", body["needed"])
    memstow.finish()
    return aiohttp.web.json_response([[id, one.action, one.why] for one in decisions for id, owner in owners.items()
                                      if one.owner == owner])
@server.PromptServer.instance.routes.get("/test/owners_of")
async def _owners_of(request):
    return aiohttp.web.json_response(owners_of(request.query["name"]))
'''
_loops.NODES = _loops.NODES.replace("import collections,", "import sys, collections,", 1)
IDS = ("kept", "stowed", "freed", "nothing")
POLICIES = '{"kept": "keep", "stowed": "stow", "freed": "free"}'
LOOP = {"inputs": {"n": -1}, "iterations": 6, "when": [{"port": "n", "op": "==", "value": -1}, None]}


def workflows(name, policies):
    first = {"zero": node("AddInts", a=0, b=0), "n": port("n", "zero")}
    step = {"n in": port("n"), "set": node("SetPolicies", number=link("n in"), name=name, policies=policies),
            "add": node("AddInts", a=link("set"), b=1), "n out": port("n", "add")}
    for seed, id in enumerate(IDS):
        first |= {f"new {id}": node("NewImage", seed=seed, size=256), id: port(id, f"new {id}")}
        step |= {f"{id} in": port(id), f"{id} inverted": node("InvertInPlace", image=link(f"{id} in")),
                 id: port(id, f"{id} inverted")}
    return first, step


def digests(comfy, name):
    graph = {}
    comfy.free(free_memory=True) # otherwise the node cache answers
    for id in IDS:
        graph |= {f"read {id}": node("DiscomfortLoopResult", loop=name, unique_id=id),
                  id: node("Fingerprint", value=link(f"read {id}"))}
    outputs = comfy.run(graph)["outputs"]
    return {id: outputs[id]["digest"] for id in IDS}


def places(comfy, name):
    return {value["id"]: value["where"] for value in comfy.loop(name)["values"]}


with Loops() as comfy:
    expected = None
    for name, policies in (("plain", "{}"), ("policies", POLICIES)):
        begun = max((line["n"] for line in comfy.lines()), default=0)
        found = comfy.loop_of(*workflows(name, policies), name=name, **LOOP)
        assert found["values_of_ports"]["n"] == 6, found
        read = digests(comfy, name)
        expected = expected or read
        assert read == expected, (read, expected)
    comfy.settled()
    assert set(places(comfy, "plain").values()) == {"ram"}, places(comfy, "plain")
    assert places(comfy, "policies") == {"kept": "ram", "stowed": "stowed", "freed": "ram", "nothing": "ram",
                                         "n": "ram"}, places(comfy, "policies")
    assert digests(comfy, "policies") == expected, "it reads the file"

    # the triggers at the ends of runs moved the value "stowed" to a file again and again
    ids = {owner: id for id, owner in comfy.get("/test/owners_of?name=policies").items()}
    lines = [line for line in comfy.lines() if line["n"] > begun]
    ends = {line["trigger"] for line in lines if line.get("kind") == "TRIGGER" and line["reason"] == "run_ended"}
    last = {}
    for line in lines:
        if line.get("kind") == "CATEGORY" and line["trigger"] in ends and line["owner"] in ids:
            last.setdefault(ids[line["owner"]], []).append(line["category"])
    assert last["stowed"].count("stowed") >= 3, last
    assert all("stowed" not in last[id] and "freed" not in last[id] for id in IDS if id != "stowed"), last

    # Priorities: values of the lowest priority move out first, and no more values move out than is needed.
    priorities = {"kept": 5, "stowed": 0, "freed": -3}
    decisions = comfy.get("/test/pressure", {"name": "policies", "priorities": priorities, "needed": 1})
    assert decisions[0] == ["freed", "stow", "policy"], decisions
    assert [one for one in decisions if one[0] in ("kept", "stowed")] == [["stowed", "keep", "not_needed"],
                                                                         ["kept", "keep", "not_needed"]], decisions
    assert {id: where for id, where in places(comfy, "policies").items() if where != "ram"} == {"freed": "stowed"}
    decisions = comfy.get("/test/pressure", {"name": "policies", "priorities": priorities, "needed": 0})
    assert [id for id, action, _why in decisions if action == "stow"] == ["freed", "stowed", "kept"], decisions
    assert places(comfy, "policies") == {"kept": "stowed", "stowed": "stowed", "freed": "stowed", "nothing": "ram",
                                         "n": "ram"}, places(comfy, "policies")
    assert digests(comfy, "policies") == expected
