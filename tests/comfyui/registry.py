#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""Tests the registry with ComfyUI's own patchers, in this process. The registry looks up policies in a fixed order,
tells a new model from a dead one with the same id, does not leak over two thousand models, and copes with models that
are lost, held, unloaded or of unusual kinds. The test `flags` is about flags of other packs."""
import _inprocess

_inprocess.under_double(__file__)
runs = _inprocess.load(freeze=False)

import gc
import logging
import sys
import weakref

import comfy.model_management as mm
import comfy.model_patcher
import torch

import memstow
from memstow_pack import registry as r, report, unload

registry, cpu = runs.registry, torch.device("cpu")


def patcher(size=16):
    return comfy.model_patcher.ModelPatcher(torch.nn.Linear(size, size), cpu, cpu)


def rule(p):
    ruling = registry.ruling(registry.find(p.model), p)
    return ruling.policy, ruling.rule


def lines(kind):
    found = [line for line in memstow.decisions()[0] if line["kind"] == kind]
    return [{key: value for key, value in line.items() if key != "n"} for line in found]


# the order of the look-up
base = patcher()
clone, cousin = base.clone(), base.clone()
grandchild = clone.clone()
assert rule(base) == (None, "default") and registry.ruling(registry.find(base.model), base).effective == "keep"
registry.defaults = {"": "stow"}
assert rule(grandchild) == ("stow", "default")
registry.defaults = {"": "stow", "OTHER": "free", "CLIP": "keep"}
assert rule(grandchild) == ("free", "default")
base.model._mgpu_unload_distorch_model = False
assert rule(grandchild) == ("keep", "flag")
base.model._mgpu_unload_distorch_model = True
assert rule(grandchild) == ("free", "flag")
grandchild._mgpu_unload_distorch_model = False # the patcher's counts before the inner model's
assert rule(grandchild) == ("keep", "flag") and rule(base) == ("free", "flag")
registry.set(base.model, cousin, r.Setting("stow", 1, "9"))
assert rule(grandchild) == ("stow", "inner") and rule(cousin) == ("stow", "patcher")
registry.set(base.model, base, r.Setting("free", 2, "8"))
assert rule(grandchild) == ("free", "parent") and rule(cousin) == ("stow", "patcher")
registry.set(base.model, grandchild, r.Setting("keep", 3, "7"))
assert rule(grandchild) == ("keep", "patcher") and rule(clone) == ("free", "parent")
registry.this_run = r.for_one_run({"default": "stow", "VAE": "burn", "nonsense": 3, "clip": "free"})
assert rule(grandchild) == ("stow", "run") and registry.this_run == {"": "stow", "CLIP": "free"}
registry.this_run = {}
registry.clear(registry.find(base.model), "7")
assert rule(grandchild) == ("free", "parent")
count = len(lines("SET"))
registry.set(base.model, base, r.Setting("free", 2, "8")) # it has this policy already
registry.set(base.model, base, r.Setting("free", 2, "8"))
assert len(lines("SET")) <= count + 1
assert lines("SET")[0] == {"kind": "SET", "by": "comfyui", "owner": registry.find(base.model).owner.id,
                           "patcher": id(cousin), "inner": id(base.model), "policy": "stow", "node": "9"}
assert r.defaults({"MEMSTOW_POLICY": " Keep ", "MEMSTOW_POLICY_VAE": "free", "MEMSTOW_POLICY_CLIP": "eat"}) == \
    {"": "keep", "VAE": "free"}
assert r.for_one_run("free") == {"": "free"}

# an impossible setting is left out, with a message
said = []
listener = logging.Handler()
listener.emit = lambda record: said.append(record.getMessage())
logging.getLogger("memstow").addHandler(listener)
for extra, part in ((None, None), ({}, None), ({"VAE": "keep"}, None), ("bogus", "bogus"), (7, "7"),
                    (["free"], "['free']"), ({"VAE": 5}, "VAE: 5")):
    said.clear()
    assert r.for_one_run(extra) == ({"VAE": "keep"} if extra == {"VAE": "keep"} else {}), extra
    assert len(said) == (part is not None) and all(f"{part} is left out" in line for line in said), (extra, said)
for word, takes_all, part in ((None, False, None), ("", False, None), (" All ", True, None),
                              ("maybe", False, "=maybe is not all")):
    said.clear()
    assert unload.takes_all({} if word is None else {"MEMSTOW_FREE_BUTTON": word}) == takes_all, word
    assert len(said) == (part is not None) and all(part in line for line in said), (word, said)
logging.getLogger("memstow").removeHandler(listener)
registry.defaults = {}

# Python uses the ids of dead objects again. A new model with the id of a dead one does not get the dead one's policy.
seen, again = {}, 0
for _ in range(2000):
    model = torch.nn.Linear(4, 4)
    p = comfy.model_patcher.ModelPatcher(model, cpu, cpu)
    identity = registry.find(model)
    assert registry.ruling(identity, p).policy is None, "another model's policy"
    assert identity.owner.id not in seen.values()
    again += id(model) in seen
    seen[id(model)] = identity.owner.id
    registry.set(model, p, r.Setting("free"))
    del model, p, identity
gc.collect()
assert again > 0, "no id was used twice: this showed nothing"
assert len(registry.identities) == 1 and len(registry.settings) == 2, registry.identities
assert registry.find(base.model).owner.figures().retired is False

# An identity is entered under the id of an object that is not the identity's model. find() returns None for this
# object. If the registry compared only ids, find() would return the identity.
victim = patcher()
stale = registry.find(victim.model)
registry.identities[id(victim)] = stale
assert registry.find(victim) is None
del registry.identities[id(victim)]

# A kept model that dies is noted as lost, with the code that dropped it. A freed model is not noted.
stale.kept, registry.phase, number = True, "the test", stale.owner.id
del stale


def dropper():
    global victim
    del victim


dropper()
gc.collect()
lost = lines("LOST")
assert [(line["owner"], line["phase"]) for line in lost] == [(number, "the test")], lost
assert any("dropper registry.py" in frame for frame in lost[0]["stack"]), lost

# unload_all_models() leaves exactly the kept models in ComfyUI's list of loaded models. Entries of dead models, which
# compare equal to each other, leave the list by themselves.
first, second, third = patcher(), patcher(), patcher()
mm.load_models_gpu([first, second, third])
registry.set(second.model, second, r.Setting("free"))
gone = weakref.ref(third.model)
del third
gc.collect()
mm.unload_all_models()
assert [e.model for e in mm.current_loaded_models
        if e.model is not None] in ([first], [first]), mm.current_loaded_models
registry.set(second.model, second, r.Setting("keep"))
del second
gc.collect()
mm.load_models_gpu([base])
assert rule(base) == ("free", "patcher")
mm.unload_all_models()
assert [e.model for e in mm.current_loaded_models] == [first], "only what is kept stays"

# the text about a model's holder names objects of the program, and no list of memstow's own
inside = patcher()
held, identity = [[[inside]]], registry.find(inside.model)
del inside
for depth, end in ((2, "an object of type builtins.list[0][0]"), (12, "main__.held[0][0][0]")):
    memstow.referrers().DEPTH = depth
    runs.held.sought = {}
    [found] = runs.held.look([identity]).values()
    assert len(found) == 1 and found[0].endswith(end), found

# The report gives each reason why a model is still there. It also says how much free memory glibc keeps.
reasons = report.why_here(identity, "keep", [], [], False), report.why_here(identity, "stow", [], [], True)
assert reasons == (["policy: keep"], ["policy: stow"]), reasons
held[0][0][0].pinned = {"weight", "bias"}
reasons = report.why_here(identity, "free", ["KSampler", "Load"], ["a.b", "c.d"], True)
assert reasons == ["node cache: KSampler, Load", "held by a.b; c.d", "pinned: 2 weights",
                   "in ComfyUI's list of loaded models"], reasons
held[0][0][0].pinned = set()
assert report.why_here(identity, "free", [], [], False) == []
kept = [bytearray(2000) for _ in range(20_000)] # too large for Python's own arenas
before = report.held_by_glibc()
del kept[::2]
assert report.held_by_glibc() - before > 10_000_000, (before, report.held_by_glibc())
runs.trigger("request", "the test asks")
text = report.text(runs.last)
assert f"\nfree, and kept by glibc: {report.size(runs.last['glibc_free_bytes'])}\n" in text, text
kept = None

# unload() unloads models from all devices, although ComfyUI's own function frees one device at a time
here, there = patcher(), patcher()
mm.load_models_gpu([here, there])
next(e for e in mm.current_loaded_models if e.model is there).device = torch.device("cpu", 1)
assert unload.unload(lambda p: p is here or p is there) == 2
assert [e.model for e in mm.current_loaded_models] == [first], mm.current_loaded_models

# When ComfyUI empties PyTorch's cache, memory that is cached for models is dropped first.
import contextlib
dropped, memstow.drop_pools = [], lambda: dropped.append("dropped")
memstow.outside_pools = lambda: (dropped.append("outside"), contextlib.nullcontext())[1]
mm.soft_empty_cache()
assert dropped == ["dropped", "outside"], dropped

# Newer versions of ComfyUI put ranges of comfy-aimdo on a model. After each trigger, the trace has the owner of these
# ranges and their resident bytes.
import types
class ModelVBAR:
    device, base_addr, max_size, _ptr = 0, 1 << 40, 10 << 30, 1
    get_residency, loaded_size = (lambda self: [1, 0]), (lambda self: 32 << 20)
module = sys.modules["comfy_aimdo.model_vbar"] = types.ModuleType("comfy_aimdo.model_vbar")
module.ModelVBAR = ModelVBAR
first.model.dynamic_vbars = {"cuda:1": object(), "cuda:0": ModelVBAR()} # the first range is of an unknown kind
runs.trigger("request", "the test asks again")
noted = [line for line in memstow.decisions()[0] if line["kind"] == "VBARS"][-1]["vbars"]
number = registry.find(first.model).owner.id
assert [(v["owner"], v["bytes"], v["resident_bytes"]) for v in noted] == [(number, 10 << 30, 32 << 20)], noted
del first.model.dynamic_vbars, sys.modules["comfy_aimdo.model_vbar"]

# Nodes pass values of many kinds. A patcher and a module without a patcher give a model; None and a list give none.
assert list(r.patchers_in(None)) == [] and list(r.patchers_in([first])) == []
assert list(r.patchers_in(first)) == [(first, first.model)]
assert list(r.patchers_in(first.model)) == [(None, first.model)]
assert sys.getrefcount(first.model) < 20
