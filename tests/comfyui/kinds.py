#!/usr/bin/env python3
# needs: comfyui
# timeout: 300
"""Loads kinds of models that no other test loads: a ControlNet, and two models without a patcher (a T2I adapter and an
upscaler). The test runs ComfyUI's own modules in a process under memstow. Each model is registered without help, and
has the bytes of its weights. The policy for the model's type frees the model, and its memory is given back."""
import _inprocess
import support

_inprocess.under_memstow(__file__)
runs = _inprocess.load()

import comfy.cldm.cldm
import comfy.t2i_adapter.adapter
import safetensors.torch
import torch

folder = support.HERE / "models/controlnet"
folder.mkdir(parents=True)


def save(name, model):
    """Saves a model with random weights to a file. Returns the bytes of the weights."""
    weights = {key: torch.randn_like(value) for key, value in model.state_dict().items()}
    safetensors.torch.save_file(weights, folder / name)
    return sum(value.numel() * value.element_size() for value in weights.values())


class Descriptor:
    """What loaders of upscalers return: an object around a plain module."""

    def __init__(self):
        self.model = torch.nn.Sequential(*(torch.nn.Conv2d(256, 256, 3) for _ in range(4)))


sizes = {
    "net.safetensors": save("net.safetensors", comfy.cldm.cldm.ControlNet(
        image_size=32, in_channels=4, model_channels=64, hint_channels=3, num_res_blocks=[1, 1], channel_mult=[1, 2],
        num_head_channels=64, use_spatial_transformer=True, context_dim=64, transformer_depth=[1, 1],
        transformer_depth_middle=1)),
    "adapter.safetensors": save("adapter.safetensors", comfy.t2i_adapter.adapter.Adapter(
        channels=[64, 128, 256, 256], nums_rb=2, cin=64, ksize=1, sk=True, use_conv=False, xl=False)),
    "LoadUpscaler": 4 * (256 * 256 * 9 + 256) * 4,
}
_inprocess.node("LoadUpscaler", ("UPSCALE_MODEL",), lambda self: (Descriptor(),))
_inprocess.node("End", (), lambda self, value, seed: (), True, value=("*",), seed=("INT", {}))


def of_file(name, seed):
    return {"load": {"class_type": "ControlNetLoader", "inputs": {"control_net_name": name}},
            "end": {"class_type": "End", "inputs": {"value": ["load", 0], "seed": seed}}}


def of_upscaler(_name, seed):
    return {"load": {"class_type": "LoadUpscaler", "inputs": {}},
            "end": {"class_type": "End", "inputs": {"value": ["load", 0], "seed": seed}}}


queue = _inprocess.Queue()
for name, workflow, kind, has_patcher in (("net.safetensors", of_file, "CONTROLNET", True),
                                          ("adapter.safetensors", of_file, "CONTROLNET", False),
                                          ("LoadUpscaler", of_upscaler, "MODEL", False)):
    queue.run(workflow(name, 1), ["end"])
    found = [o for o in runs.last["owners"] if o["origin"] == name]
    assert len(found) == 1 and found[0]["type"] == kind and found[0]["policy"] is None, (name, runs.last)
    identity = runs.registry.by_owner(found[0]["owner"])
    assert bool(identity.patchers) == has_patcher, (name, list(identity.patchers))
    identity = None
    have, want = found[0]["after_bytes"], sizes[name]
    assert want > 2**20 and want <= have <= 1.05 * want + 2**18, (name, have, want)
    owner = found[0]["owner"]
    runs.registry.defaults = {"": "keep", kind: "free"}
    assert queue.run(workflow(name, 2), ["end"]) == {"load"}
    freed = [o for o in runs.last["freed"] if o["origin"] == name]
    assert [(o["owner"], o["rule"]) for o in freed] == [(owner, f"MEMSTOW_POLICY_{kind}")], (name, runs.last)
    assert freed[0]["before_bytes"] >= want and freed[0]["after_bytes"] <= 0.05 * want, (name, freed)
    assert not runs.registry.all(), runs.registry.all()
    runs.registry.defaults = {}
