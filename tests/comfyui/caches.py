#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""The caches of ComfyUI's executor, in this process. An output that refers to a freed model, also through closures,
conditioning or node objects, leaves every kind of cache, also the caches of subgraphs. Other outputs stay cached. A
cache of an unknown class is not touched: the model is stowed instead of freed, and report and trace say so. The policy
of a policy node counts also if the node is cached."""
import _inprocess

_inprocess.under_double(__file__)
runs = _inprocess.load()
assert runs is not None

import comfy.model_patcher
import execution
import torch
from comfy_execution.graph_utils import GraphBuilder

import memstow

MODEL = {"name": ("STRING", {})}
ran = []


def load(self, name):
    ran.append(name)
    module = torch.nn.Linear(256, 256)
    cpu = torch.device("cpu")
    return (comfy.model_patcher.ModelPatcher(module, cpu, cpu),)


def wrapped(self, model):
    """A clone whose options refer to another object only through a closure."""
    clone = model.clone()
    clone.model_options["model_function_wrapper"] = lambda *a, held=model: held
    return (clone,)


def expand(self, name):
    graph = GraphBuilder()
    loader = graph.node("Load", name=name)
    return {"result": (loader.out(0),), "expand": graph.finalize()}


def remember(self, model):
    self.model = model
    return (1,)


def conditioning(self, model):
    return ([[torch.zeros(1), {"control": {"patcher": model}}]],)


def plain(self, number):
    ran.append(number)
    return (number,)


number = {"number": ("INT", {})}
_inprocess.node("Load", ("MODEL",), load, **MODEL)
_inprocess.node("Wrapped", ("MODEL",), wrapped, model=("MODEL",))
_inprocess.node("Expand", ("MODEL",), expand, **MODEL)
_inprocess.node("Remember", ("INT",), remember, model=("MODEL",))
_inprocess.node("Cond", ("CONDITIONING",), conditioning, model=("MODEL",))
_inprocess.node("Plain", ("INT",), plain, **number)
_inprocess.node("End", (), lambda self, **values: (), True, a=("*",), b=("*",))


def prompt(policy="free", name="x", loader="Load"):
    return {"load": {"class_type": loader, "inputs": {"name": name}},
            "policy": {"class_type": "MemstowPolicy",
                       "inputs": {"model": ["load", 0], "policy": policy, "priority": 0}},
            "wrapped": {"class_type": "Wrapped", "inputs": {"model": ["policy", 0]}},
            "remember": {"class_type": "Remember", "inputs": {"model": ["load", 0]}},
            "cond": {"class_type": "Cond", "inputs": {"model": ["wrapped", 0]}},
            "plain": {"class_type": "Plain", "inputs": {"number": 5}},
            "kept": {"class_type": "Load", "inputs": {"name": "kept"}},
            "end": {"class_type": "End", "inputs": {"a": ["cond", 0], "b": ["remember", 0]}},
            "end2": {"class_type": "End", "inputs": {"a": ["plain", 0], "b": ["kept", 0]}}}


ENDS = ["end", "end2"]


def models():
    return sorted((i.origin, i.owner.id) for i in runs.registry.all())


for kind, arguments in ((execution.CacheType.CLASSIC, {}), (execution.CacheType.LRU, {"lru": 100}),
                        (execution.CacheType.RAM_PRESSURE, {})):
    for loader in ("Load", "Expand"):
        queue = _inprocess.Queue(kind, **arguments)
        ran.clear()
        queue.run(prompt(loader=loader), ENDS)
        assert sorted(map(str, ran)) == ["5", "kept", "x"], ran
        assert [f["before_bytes"] for f in runs.last["freed"]] == [4 * 257 * 256], (kind, loader, runs.last)
        assert len(models()) == 1, (kind, loader, models())
        kept = models()
        ran.clear()
        cached = queue.run(prompt(loader=loader), ENDS)
        assert {"plain", "kept", "end2"} <= cached and not cached & {"load", "policy", "wrapped", "cond"}, cached
        assert ran == ["x"] and models() == kept, (kind, loader, ran, models(), kept)
        # The policy is changed from keep to stow and back to keep. Then the model has the policy keep, even if the
        # policy node does not run the third time. It does not run if the cache still has its output of the first time,
        # as every kind of cache has, except the classic one.
        queue.run(prompt("keep", loader=loader), ENDS)
        owner = max(models(), key=lambda m: m[1])[1]
        queue.run(prompt("stow", loader=loader), ENDS)
        cached = queue.run(prompt("keep", loader=loader), ENDS)
        identity = runs.registry.by_owner(owner)
        assert runs.registry.ruling(identity, runs.registry.found(identity, [])).policy == "keep", (kind, cached)
        assert ("policy" in cached) == (kind != execution.CacheType.CLASSIC), cached
        assert len(identity.outputs) in (3, 4), identity.outputs # of this prompt only
        identity = None
        queue.run(prompt("free", loader=loader), ENDS)
        assert len(models()) == 1, models()
        queue.executor.reset()
        queue = None
        import gc
        gc.collect()
        assert not models(), models()

# there is no cache
queue = _inprocess.Queue(execution.CacheType.NONE)
queue.run(prompt(), ENDS)
assert not models() or {m[0] for m in models()} <= {"Load"}, models()

# a cache of an unknown class
import comfy_execution.caching


class ClockworkCache(comfy_execution.caching.HierarchicalCache):
    pass


queue = _inprocess.Queue()
queue.executor.caches.outputs = ClockworkCache(comfy_execution.caching.CacheKeySetInputSignature)
queue.executor.caches.all = [queue.executor.caches.outputs, queue.executor.caches.objects]
queue.run(prompt(name="y"), ENDS)
owner = next(o for o in runs.last["owners"] if o["policy"] == "free")
assert owner["action"] == "stow" and owner["stowed_bytes"] and not runs.last["freed"], runs.last
assert "unknown cache class" in runs.last["notes"][0] and "ClockworkCache" in runs.last["notes"][0], runs.last["notes"]
read = [line for line in memstow.decisions()[0] if line["kind"] == "READ" and line["owner"] == owner["owner"]][-1]
assert read["instead"] == "stow" and read["policy"] == "free" and "ClockworkCache" in read["because"], read
assert len(queue.executor.caches.outputs.cache) == 9

# The search for a model goes through all words of a tokenizer, finds the model behind them, and takes little memory.
import tracemalloc
from memstow_pack import caches
target, words = object(), {f"word {number}": number * 1000 for number in range(250_000)}
tracemalloc.start()
assert caches.reaches([words, [[[target]]]], {id(target)}) and not caches.reaches([words], {id(target)})
assert tracemalloc.get_traced_memory()[1] < 5 << 20, tracemalloc.get_traced_memory() # a list of all of them has 2 MB
tracemalloc.stop()
