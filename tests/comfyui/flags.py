#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""Flags that other packs set on a model, with ComfyUI's own patchers, in this process. A flag is looked for on the
patcher, then on the object that it was cloned from, then on the inner model. It does not matter which flag was set
first. A policy takes precedence over all flags. The trace shows where a flag was set and where it was read. `memstow
decisions --check` reports a flag that was set on one object but read on another."""
import _inprocess

_inprocess.under_memstow(__file__)
runs = _inprocess.load()

import gc
import itertools
import json
import os

import comfy.model_patcher
import torch

import memstow
import support
from memstow_pack import registry as r, unload
from memstow_pack.flags import FLAG

registry, cpu = runs.registry, torch.device("cpu")


def patcher():
    return comfy.model_patcher.ModelPatcher(torch.nn.Linear(64, 64), cpu, cpu)


def ruling(p):
    return registry.ruling(registry.find(p.model), p)


def rule(p):
    return ruling(p).policy, ruling(p).rule, ruling(p).detail


def lines(kind, p):
    return [line for line in memstow.decisions()[0] if line["kind"] == kind
            and line["owner"] == registry.find(p.model).owner.id]


def faults(p):
    """The faults that --check finds for this model: (fault, text)."""
    found = json.loads(support.memstow("decisions", os.getpid(), "--check", "--json", status=None).stdout)["faults"]
    return [(f["fault"], f["text"]) for f in found if f["owner"] == registry.find(p.model).owner.id]


def family():
    """Returns a model's patcher, two clones of it (as a LoRA makes them), and a clone of the first clone."""
    base = patcher()
    clone, cousin = base.clone(), base.clone()
    return base, clone, cousin, clone.clone()


# The nearest flag counts: on the patcher, on its origin, on the inner model.
base, clone, cousin, grandchild = family()
setattr(base.model, FLAG, False)
assert rule(grandchild) == ("keep", "flag", f"{FLAG} on the inner model")
setattr(base, FLAG, True)
assert rule(grandchild) == ("free", "flag", f"{FLAG} on the patcher that it was cloned from"), rule(grandchild)
assert rule(base) == ("free", "flag", f"{FLAG} on the patcher")
setattr(clone, FLAG, False)
assert rule(grandchild)[0] == rule(clone)[0] == "keep" and rule(cousin)[0] == "free"
assert ruling(grandchild).flag.members() == {"flag": FLAG, "on_patcher": False, "on_inner": False, "from": id(clone)}
delattr(clone, FLAG)
assert ruling(cousin).flag.members() == {"flag": FLAG, "on_patcher": True, "on_inner": False, "from": id(base)}
registry.set(base.model, base, r.Setting("stow"))
assert rule(grandchild)[:2] == ("stow", "parent") and ruling(grandchild).flag.source == id(base)

# The order in which flags and a policy are set makes no difference to the policies that the models get.
def outcome(order):
    base, clone, cousin, grandchild = people = family()
    says = {"flag on the inner model": lambda: setattr(base.model, FLAG, True),
            "flag on the base": lambda: setattr(base, FLAG, False),
            "flag on the clone": lambda: setattr(clone, FLAG, True),
            "policy on the cousin": lambda: registry.set(base.model, cousin, r.Setting("stow"))}
    for words in order:
        says[words]()
    found = registry.found(registry.find(base.model), [])
    return [rule(p) for p in people] + [people.index(found)]


for words in (("flag on the inner model", "flag on the base", "flag on the clone"),
              ("flag on the inner model", "flag on the base", "flag on the clone", "policy on the cousin")):
    outcomes = [outcome(order) for order in itertools.permutations(words)]
    assert all(found == outcomes[0] for found in outcomes), outcomes
assert [policy for policy, *_ in outcomes[0][:-1]] == ["stow"] * 4 and outcomes[0][-1] == 2

# For a model that is not loaded, the patcher with a flag or a policy counts, not the first patcher.
for of in (0, 1, 2, 3):
    people = family()
    setattr(people[of], FLAG, True)
    assert registry.found(registry.find(people[0].model), []) is people[of], of
    assert registry.found(registry.find(people[0].model), [people[3]]) is people[3]
people = family()
assert registry.found(registry.find(people[0].model), []) is people[0]
for of, word in ((1, "keep"), (3, "free"), (2, "stow"), (1, "free")):
    registry.set(people[0].model, people[of], r.Setting(word))
    assert registry.found(registry.find(people[0].model), []) is people[of], of

# The trace has the object with the flag. It also has the look-up: both values of the flag, and which of them counted.
base, clone, cousin, grandchild = people = family()
setattr(base, FLAG, True)
setattr(base.model, FLAG, False)
unload.management().load_models_gpu([grandchild])
registry.note_flags("7") # as at the end of a node
seen = [(line["patcher"], line["policy"], line["value"], line["node"]) for line in lines("SET", base)
        if line.get("flag") == FLAG]
assert sorted(seen) == sorted([(0, "keep", False, "7"), (id(base), "free", True, "7")]), seen
registry.note_flags("8")
assert len(lines("SET", base)) == 2, "said again, though it is no news"
runs.registry.this_run = r.for_one_run("keep") # nothing is freed here
runs.trigger("request", "the test asks")
runs.registry.this_run = {}
read = lines("READ", base)[-1]
assert (read["patcher"], read["parents"]) == (id(grandchild), [id(clone), id(base)]), read
assert (read["rule"], read["flag"], read["on_patcher"], read["on_inner"],
        read["from"]) == ("run", FLAG, True, False, id(base)), read
assert not faults(base), faults(base)

# A flag is set on one object, and read on another.
base, clone, cousin, grandchild = people = family()
unload.management().load_models_gpu([clone])
setattr(cousin, FLAG, True)
runs.trigger("request", "the test asks")
assert lines("READ", base)[-1]["rule"] == "default"
found = faults(base)
assert [name for name,
        _text in found] == ["ids_differ"] and found[0][1].startswith("flag set on one object, read on another"), found
assert str(id(cousin)) in found[0][1] and str(id(clone)) in found[0][1], found
delattr(cousin, FLAG)
runs.trigger("request", "the test asks")
assert lines("SET", base)[-1]["policy"] == "none" and len(faults(base)) == 1, faults(base)
setattr(cousin, FLAG, True)
runs.registry.note_flags()
del cousin, people # the object with the flag is gone
gc.collect()
runs.trigger("request", "the test asks")
assert lines("SET", base)[-1]["policy"] == "none" and len(faults(base)) == 1, faults(base)

# A flag on the base model frees the memory that a clone has loaded.
base, clone, cousin, grandchild = people = family()
setattr(base, FLAG, True)
unload.management().load_models_gpu([clone])
owner = registry.find(base.model).owner.id
runs.trigger("request", "the test asks")
decisions = [line for line in memstow.decisions()[0] if line["kind"] == "DECISION" and line["owner"] == owner]
assert [(line["policy"], line["action"]) for line in decisions] == [("free", "free")], decisions
assert (lines("READ", base)[-1]["rule"], lines("READ", base)[-1]["from"]) == ("flag", id(base)) and not faults(base)
assert clone not in unload.loaded()
