#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""A kept model is not loaded twice: a later workflow finds it. This holds after another workflow, after ComfyUI's own
reset, and after a selective reset. It holds for a model that a node of the prompt loads, and for a model that a
subgraph loads and does not return. It also holds if the loader returns other small outputs, because these are kept
together with the model. Large tensors are not kept."""
import _inprocess

_inprocess.under_double(__file__)
runs = _inprocess.load()

import gc

import comfy.model_patcher
import execution
import torch
from comfy_execution.graph_utils import GraphBuilder

from memstow_pack.registry import Setting

ran = []


def model():
    cpu = torch.device("cpu")
    return comfy.model_patcher.ModelPatcher(torch.nn.Linear(256, 256), cpu, cpu)


def load(self, name):
    ran.append(name)
    return (model(), name, {"options": [1, 2], "noise": torch.zeros(1000)})


def load_much(self, name):
    ran.append(name)
    return (model(), torch.zeros(33 << 20, dtype=torch.uint8))


def use(self, model, seed):
    return (seed,)


def whole(self, name, seed):
    graph = GraphBuilder()
    loader = graph.node("Load", name=name)
    return {"result": (graph.node("Use", model=loader.out(0), seed=seed).out(0),), "expand": graph.finalize()}


def twice(self, name, seed):
    """A subgraph in a subgraph."""
    graph = GraphBuilder()
    return {"result": (graph.node("Whole", name=name, seed=seed).out(0),), "expand": graph.finalize()}


seed = {"seed": ("INT", {})}
named = {"name": ("STRING", {})}
_inprocess.node("Load", ("MODEL", "STRING", "DICT"), load, **named)
_inprocess.node("LoadMuch", ("MODEL", "IMAGE"), load_much, **named)
_inprocess.node("Use", ("INT",), use, model=("MODEL",), **seed)
_inprocess.node("Whole", ("INT",), whole, **named, **seed)
_inprocess.node("Twice", ("INT",), twice, **named, **seed)
_inprocess.node("End", (), lambda self, value: (), True, value=("*",))


def by_load(seed, loader="Load", name="plain"):
    return {"load": {"class_type": loader, "inputs": {"name": name}},
            "use": {"class_type": "Use", "inputs": {"model": ["load", 0], "seed": seed}},
            "end": {"class_type": "End", "inputs": {"value": ["use", 0]}}}


def by_graph(seed, loader="Whole", name="inside"):
    return {"whole": {"class_type": loader, "inputs": {"name": name, "seed": seed}},
            "end": {"class_type": "End", "inputs": {"value": ["whole", 0]}}}


def models():
    return sorted((i.origin, i.owner.id) for i in runs.registry.all())


runs.registry.defaults = {"": "keep"}
OTHER = {"other": {"class_type": "Load", "inputs": {"name": "other"}},
         "end": {"class_type": "End", "inputs": {"value": ["other", 1]}}}
for kind, arguments in ((execution.CacheType.CLASSIC, {}), (execution.CacheType.LRU, {"lru": 1}),
                        (execution.CacheType.RAM_PRESSURE, {})):
    for workflow in (by_load, by_graph, lambda seed: by_graph(seed, "Twice")):
        for identity in runs.registry.all():
            identity.let_go()
        identity = queue = None
        gc.collect()
        assert not models(), models()
        queue = _inprocess.Queue(kind, **arguments)
        ran.clear()
        queue.run(workflow(1), ["end"])
        there = models()
        assert len(ran) == 1 and len(there) == 1, (kind, ran, there)
        queue.run(OTHER, ["end"])
        queue.run(workflow(2), ["end"])
        assert len(ran) == 2, (kind, workflow, "it was loaded twice", ran)
        queue.executor.reset() # every model is kept: this is ComfyUI's own reset
        queue.run(workflow(3), ["end"])
        assert len(ran) == 2 and there[0] in models(), (kind, workflow, "it was loaded twice", ran)
        # If any model is to be stowed, the reset takes only models that are to be stowed or freed. Models without a
        # policy stay.
        runs.registry.defaults = {}
        stowed = model()
        runs.registry.set(stowed.model, stowed, Setting("stow"))
        for identity in runs.registry.all():
            identity.let_go()
        identity = None
        queue.executor.reset()
        queue.run(workflow(4), ["end"])
        assert len(ran) == 2 and there[0] in models(), (kind, workflow, "it was loaded twice", ran)
        del stowed
        runs.registry.defaults = {"": "keep"}

# large outputs are not kept together with the model
queue = _inprocess.Queue()
queue.run(by_load(1, "LoadMuch", "much"), ["end"])
held = next(i for i in runs.registry.all() if i.origin == "LoadMuch")
assert held.held is not None and not held.outputs, held.outputs
