#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""The pack tells memstow when ComfyUI loads a model. So memory that ComfyUI allocates at other times, for example while
it samples, need not move. This test runs ComfyUI's own modules on the CPU, so it shows only that the calls come in the
right places. The library is a double, and the test replaces its two calls for load phases by functions that note which
phases are open."""
import _inprocess

_inprocess.under_double(__file__)
runs = _inprocess.load()

import comfy.model_management as mm
import comfy.model_patcher
import torch

import memstow

cpu = torch.device("cpu")
phases: list = [] # the owners of the open phases


def begin(owner):
    phases.append(owner)
    return 0


def end():
    phases.pop()
    return 0


memstow._library.load_begin, memstow._library.load_end = begin, end
seen = {}


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 4), requires_grad=False)

    def to(self, *arguments, **options):
        seen["to the device"] = list(phases)
        return super().to(*arguments, **options)

    def forward(self, x):
        seen["computed"] = list(phases)
        return x @ self.weight


class Patched(comfy.model_patcher.ModelPatcher):
    def patch_weight_to_device(self, *arguments, **options):
        seen["patched"] = list(phases)
        return super().patch_weight_to_device(*arguments, **options)


def load(_self):
    patcher = Patched(torch.nn.Sequential(Layer(), Layer()), cpu, cpu)
    patcher.add_patches({"0.weight": ("diff", (torch.ones(4, 4),))})
    seen["made"] = list(phases)
    return (patcher,)


def sample(_self, model):
    mm.load_models_gpu([model])
    model.model(torch.ones(1, 4))
    seen["sampled"] = list(phases)
    seen["of"] = runs.registry.find(model.model).owner.id
    return ()


_inprocess.node("LoadIt", ("MODEL",), load)
_inprocess.node("Sample", (), sample, True, model=("MODEL",))
prompt = {"load": {"class_type": "LoadIt", "inputs": {}},
          "sample": {"class_type": "Sample", "inputs": {"model": ["load", 0]}}}
_inprocess.Queue().run(prompt, ["sample"])
assert len(seen["made"]) == 1 and seen["made"] != [seen["of"]], seen # the loader's provisional owner
assert set(seen["patched"]) == {seen["of"]}, seen
assert seen["computed"] == seen["sampled"] == [] and not phases, seen


class Broken(comfy.model_patcher.ModelPatcher):
    def patch_weight_to_device(self, *arguments, **options):
        raise RuntimeError("no memory")


broken = Broken(torch.nn.Sequential(Layer()), cpu, cpu)
broken.add_patches({"0.weight": ("diff", (torch.ones(4, 4),))})
try:
    mm.load_models_gpu([broken])
    raise SystemExit("it loads after all")
except RuntimeError as error:
    assert str(error) == "no memory" and not phases, (error, phases)
