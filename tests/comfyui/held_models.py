#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""In this process, a list keeps one more model each run, although the models are to be freed. The holder of each model
is looked for once, and a run with a dozen models costs no more than a run with a few. Cached outputs are searched once,
however many models there are. The log has the number of models, not a line for each. Reports tell models of one name
apart by their files. Reports of runs are kept: a later trigger does not replace them. While the tab "Memory" reads
figures of models, it holds none of these models, so that a trigger meanwhile can free them."""
import _inprocess

_inprocess.under_double(__file__)
runs = _inprocess.load(freeze=False)

import gc
import weakref

import comfy.model_management as mm
import comfy.model_patcher
import torch

import memstow
from memstow_pack import caches, held, report, routes
from memstow_pack.runs import REPORTS

MODELS, cpu = 12, torch.device("cpu")
kept: list = []


def load(self, name):
    patcher = comfy.model_patcher.ModelPatcher(torch.nn.Linear(16, 16), cpu, cpu)
    runs.registry.find(patcher.model).origin = "a.safetensors"
    kept.append(patcher)
    return (patcher,)


_inprocess.node("LoadOne", ("MODEL",), load, name=("STRING", {}))
_inprocess.node("End", (), lambda self, value: (), is_output=True, value=("*", {}))
asked, reached = [], []
real_referrers, real_reached = gc.get_referrers, caches._reached
queue = _inprocess.Queue()


def referrers(*things):
    asked.append(len(things))
    return real_referrers(*things)


def reached_(root):
    reached.append(root)
    return real_reached(root)


def run(number):
    """Makes a run. Returns how often the pack looked through all objects meanwhile, and how many cached outputs it
    searched."""
    del asked[:], reached[:]
    queue.run({"load": {"class_type": "LoadOne", "inputs": {"name": str(number)}},
               "end": {"class_type": "End", "inputs": {"value": ["load", 0]}}}, ["end"])
    return len(asked), len(reached)


runs.registry.defaults = {"": "free"}
gc.get_referrers, caches._reached = referrers, reached_
counts = [run(number) for number in range(MODELS)]
print(counts)
assert max(counts[-5:]) <= max(counts[1:4]), counts # a dozen cost as much as a few
lines = [line for line in memstow.decisions()[0] if line["kind"] == "HELD"]
assert len({line["owner"] for line in lines}) == MODELS == len(lines), "each is said once"
assert all(line["place"] == "__main__.kept"
           and line["holders"][0].startswith("__main__.kept[") for line in lines), lines
assert {line["pack"] for line in lines} == {"held_models.py"}, lines

# If no holder of a model is found, each next search comes after more runs than the one before. If a holder is found,
# the next search comes only after many runs.
identities = runs.registry.all()
assert all(one.known.holders and one.due == held.AGAIN for one in runs.held.sought.values())
kept_by_none = held.Held(runs.registry)
real_find, memstow.referrers().find = memstow.referrers().find, lambda targets, *more, **options: (
    [[] for _ in targets], False)
due = []
for age in range(20):
    kept_by_none.look(identities[:1])
    due.append(kept_by_none.sought[identities[0].owner.id].due)
memstow.referrers().find = real_find
assert sorted(set(due)) == [1, 2, 4, 8, 16, 32], due

# A loop that holds a model is named once, as the model's place. Nothing is searched for until the loop lets it go.
by_loop, number = held.Held(runs.registry), identities[0].owner.id
by_loop.references = lambda: [("port m of loop l", [identities[0].model()])]
_lines, first = memstow.decisions()
for _run in range(2):
    assert by_loop.look(identities[:1]) == {number: ["port m of loop l"]} and not by_loop.sought[number].searches
[line] = [line for line in memstow.decisions(first)[0] if line["kind"] == "HELD"]
assert (line["owner"], line["pack"], line["place"]) == (number, "memstow", "port m of loop l"), line
by_loop.references = lambda: []
assert by_loop.look(identities[:1])[number][0].startswith("__main__.kept["), by_loop.look(identities[:1])

# in words
line = report.line(runs.last)
assert f"not freed {MODELS}: {MODELS} of OTHER Linear (a.safetensors), held by __main__.kept[…]" in line, line
assert line.count("Linear") == 1, line
text = report.text(runs.last)
assert "OTHER Linear (a.safetensors)" in text and "policy none" not in text, text
assert "policy: free; held by __main__.kept[0]" in " ".join(text.split()), text
for row in text.split("\n"):
    assert row.count("policy") <= 1, row

# reports
assert [one["run"] for one in runs.reports] == list(range(1, MODELS + 1)) and runs.reports.maxlen == REPORTS
runs.trigger("request", "the test asks")
assert runs.last["reason"] == "request"
assert runs.reports[-1]["reason"] == "run_ended" and runs.reports[-1]["run"] == MODELS

# --- The last reference to a model goes while the tab reads the figures of all models. The model is freed then, because
# the tab holds no reference to it.
alone, real_figures, is_gone = [load(None, "alone")[0]], report.figures_of, []
kept.clear()
mm.load_models_gpu(alone)
model = weakref.ref(alone[0].model)


def figures_of(owner):
    alone.clear()
    gc.collect()
    is_gone.append(model() is None)
    return real_figures(owner)


report.figures_of = figures_of
assert len([one for one in routes.owners(runs) if one["is_loaded"]]) == 1
assert is_gone and all(is_gone), is_gone
