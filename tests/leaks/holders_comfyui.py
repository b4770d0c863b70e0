#!/usr/bin/env python3
# needs: comfyui
# long
# timeout: 900
"""A real ComfyUI under memstow, with node packs that keep latents of other nodes, each pack in its own way. A
dictionary that never evicts, a closure in a list of callbacks and a waiting thread keep latents of KSampler; the other
packs keep latents of another pack. What each pack keeps is one finding. The holder is named first, in text and in JSON,
before the node that allocated the latents. The node pack of memstow looks for holders by itself, once."""
import sys

import support
from _keepers import KEEPERS
from _leaks import brief, leaks

sys.path.insert(0, str(support.ROOT / "tests/comfyui"))
from _comfy import Comfy, link, sample, unet # noqa: E402

RUNS, SIZE = 13, 256
NODE = '''
{keeper}
class Hold_{name}:
    RETURN_TYPES, FUNCTION, CATEGORY = ("LATENT",), "hold", "test"
    @classmethod
    def INPUT_TYPES(cls):
        return {{"required": {{"latent": ("LATENT",), "seed": ("INT", {{"default": 0, "max": 2**40}})}}}}
    def hold(self, latent, seed):
        keep(latent{part}, seed)
        return (latent,)
NODE_CLASS_MAPPINGS = {{"Hold_{name}": Hold_{name}}}
'''
MAKER = '''
import torch
class MakeLatent:
    RETURN_TYPES, FUNCTION, CATEGORY = ("LATENT",), "make", "test"
    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"seed": ("INT", {"default": 0, "max": 2**40})}}
    def make(self, seed):
        return ({"samples": torch.zeros(1, 16, 1, 32, 32)},)
NODE_CLASS_MAPPINGS = {"MakeLatent": MakeLatent}
'''
KSAMPLER = ("dictionary", "closure", "thread")


def pack(number, name):
    """The source of a pack. Some keep the tensor, others the dictionary that contains it."""
    return NODE.format(keeper=KEEPERS[name], name=name, part="['samples']" if number % 2 else "")


def workflow(run):
    found = {"unet": unet()}
    for number, name in enumerate(KEEPERS):
        seed = 1000 * run + number # equal inputs would share one cached output
        if name in KSAMPLER:
            part = sample("unet", seed, f"{name}_")
            part[f"{name}_latent"]["inputs"].update(width=SIZE, height=SIZE)
        else:
            part = {f"{name}_sample": {"class_type": "MakeLatent", "inputs": {"seed": seed}},
                    f"{name}_digest": {"class_type": "Digest", "inputs": {}}}
        part[f"{name}_hold"] = {"class_type": f"Hold_{name}", "inputs": {"latent": link(f"{name}_sample"), "seed": run}}
        part[f"{name}_digest"]["inputs"]["value"] = link(f"{name}_hold")
        found.update(part)
    return found


def look(subject):
    document = leaks(subject, status=1)
    print(document["runs"], brief(document))
    return document


def check(document):
    found = {leak["node_origin"].removeprefix("node ").removesuffix("_sample"): leak for leak in document["leaks"]}
    assert found.keys() == KEEPERS.keys(), (sorted(found), document["found"], brief(document))
    assert document["found"] == len(KEEPERS), (sorted(found), document["found"], brief(document))
    for name, leak in found.items():
        assert list(leak)[0] == "held_by" and leak["held_by"] == f"hold-{name}", (name, leak["holders"])
        assert leak["node"] == ("KSampler" if name in KSAMPLER else "MakeLatent"), (name, leak["node"])


packs = {f"hold-{name}": pack(number, name) for number, name in enumerate(KEEPERS)}
files = {name: {"__init__.py": text} for name, text in {**packs, "maker": MAKER}.items()}
with Comfy("memstow", ffn=4096, packs=files, quick=False) as comfy:
    for run in range(RUNS):
        comfy.run(workflow(run))
    for _attempt in range(5): # on a loaded machine there may not be enough time for all of them at once
        if "no time for all" not in support.memstow("leaks", comfy.pid(), status=1).stderr:
            break
    check(look(comfy.pid()))
    held = [line for line in comfy.lines("HELD")]
    check(look(comfy.pid()))
    assert [line for line in comfy.lines("HELD")] == held, "what is known is not asked for again"
    text = support.memstow("leaks", comfy.pid(), "--top=100", status=1).stdout
    print(text)
    blocks = text.split("Growing\n")[1].split("Not counted as leaks\n")[0].split("held by ")[1:]
    named = [block for block in blocks if block.startswith("hold-")]
    assert {block.split(".")[0].split(":")[0] for block in named} == {f"hold-{name}" for name in KEEPERS}, named
    assert sum("node KSampler (node " in block for block in named) == len(KSAMPLER), named
    assert sum("node MakeLatent (node " in block for block in named) == len(KEEPERS) - len(KSAMPLER), named
    support.memstow("snapshot", comfy.pid(), "-o", "held.mst")
    check(look("held.mst"))
