"""A node pack for the ComfyUI under test: nodes that workflows need beside ComfyUI's own, and nodes that misbehave."""
import asyncio
import ctypes
import gc
import hashlib
import sys
import threading
import time

import aiohttp.web
import comfy.model_management
import server
import torch

held = []
loads = []


class Any(str):
    def __ne__(self, other):
        return False
    __hash__ = str.__hash__


def node(outputs, is_output=False, **inputs):
    """Makes a node class with these inputs and outputs from a function."""
    def make(function):
        return type(function.__name__, (), {
            "RETURN_TYPES": outputs, "FUNCTION": "run", "CATEGORY": "test", "OUTPUT_NODE": is_output,
            "INPUT_TYPES": classmethod(lambda cls: {"required": inputs}), "run": function})
    return make


def number(value=0):
    return ("INT", {"default": value, "max": 2**40})


@node(("CONDITIONING",), seed=number())
def RandomConditioning(self, seed):
    generator = torch.Generator().manual_seed(seed)
    return ([[torch.randn(1, 8, 4096, generator=generator), {}]],)


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for key in sorted(value):
            yield from tensors(value[key])
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors(part)


@node((), True, value=(Any("*"),))
def Digest(self, value):
    digest = hashlib.sha256()
    for tensor in tensors(value):
        digest.update(tensor.contiguous().float().numpy().tobytes())
    return {"ui": {"digest": [digest.hexdigest()]}}


@node(("LATENT",), value=(Any("*"),), seed=number())
def Fail(self, value, seed):
    raise ValueError("as planted")


@node(("LATENT",), value=(Any("*"),), seed=number())
def RunOut(self, value, seed):
    raise comfy.model_management.OOM_EXCEPTION("as planted")


@node(("LATENT",), value=(Any("*"),), seed=number())
def Slow(self, value, seed):
    for _ in range(600):
        comfy.model_management.throw_exception_if_processing_interrupted()
        time.sleep(0.05)
    return (value,)


def note_who_looks():
    """From now on, lines in the log name the threads that look for holders and the threads that run nodes."""
    finder = sys.modules["memstow"].referrers()
    before, worker = finder.find, threading.get_ident()

    def noting(*arguments, **options):
        print(f"holders are looked for on {'the worker' if threading.get_ident() == worker else 'another'} thread",
              flush=True)
        return before(*arguments, **options)
    finder.find = noting


@node(("LATENT",), model=("MODEL",), latent=("LATENT",), seed=number())
def Hold(self, model, latent, seed):
    if not held:
        note_who_looks()
    held.append({"model": model})
    return (latent,)


@node(("LATENT",), latent=("LATENT",), seed=number())
def LetGo(self, latent, seed):
    held.clear()
    return (latent,)


@node(("LATENT",), latent=("LATENT",), seed=number())
def UnloadAll(self, latent, seed):
    comfy.model_management.unload_all_models()
    return (latent,)


@node((), True, count=number())
def WriteLines(self, count):
    import memstow
    for line in range(count):
        memstow.trace({"kind": "PLANTED", "line": line})
    return ()


@node(("MODEL", "CLIP", "VAE"), name=("STRING", {}))
def LoadThree(self, name):
    """Loads three models in one node, as a checkpoint loader does."""
    import comfy.sd
    import comfy.utils
    import folder_paths

    def path(folder):
        return folder_paths.get_full_path_or_raise(folder, name)
    return (comfy.sd.load_diffusion_model(path("diffusion_models")), comfy.sd.load_clip([path("text_encoders")]),
            comfy.sd.VAE(sd=comfy.utils.load_torch_file(path("vae"))))


@node((), True, clip=("CLIP",), vae=("VAE",))
def WriteWeights(self, clip, vae):
    """Writes all weights, so that their pages exist."""
    for model in (clip.cond_stage_model, vae.first_stage_model):
        for weight in model.parameters():
            weight.data.zero_()
    return ()


@server.PromptServer.instance.routes.get("/test/tidy")
async def tidy(_request):
    gc.collect()
    return aiohttp.web.json_response({"trimmed": ctypes.CDLL(None).malloc_trim(0)})


class AsyncPlant:
    """Allocates between awaits, while another node of this kind does the same. Each block must belong to the node that
    allocated it."""
    RETURN_TYPES, FUNCTION, CATEGORY = ("LATENT",), "run", "test"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"size": number(1000), "blocks": number(20)}}

    async def run(self, size, blocks):
        kept = []
        for _ in range(blocks):
            kept.append(torch.zeros(size, dtype=torch.uint8))
            await asyncio.sleep(0.002)
        return ({"samples": kept},)


class AsyncLoad:
    """An asynchronous loader, in which comfy.sd loads the model between two awaits."""
    RETURN_TYPES, FUNCTION, CATEGORY = ("MODEL",), "run", "test"

    @classmethod
    def INPUT_TYPES(cls):
        return {"required": {"name": ("STRING", {})}}

    async def run(self, name):
        import comfy.sd
        import folder_paths
        await asyncio.sleep(0.01)
        model = comfy.sd.load_diffusion_model(folder_paths.get_full_path_or_raise("diffusion_models", name))
        await asyncio.sleep(0.01)
        return (model,)


NODE_CLASS_MAPPINGS = {c.__name__: c for c in (RandomConditioning, Digest, Fail, RunOut, Slow, Hold, LetGo, UnloadAll,
                                               WriteLines, LoadThree, WriteWeights, AsyncPlant, AsyncLoad)}
