#!/usr/bin/env python3
# needs: comfyui cc
# timeout: 300
"""If a model was moved out of its device, each call of ComfyUI that touches the model's weights restores the model
first, or is refused and touches nothing. The test runs on the CPU, with two doubles. The double of libmemstow says
which models are moved out. `Elsewhere` is a tensor in place of device memory: a read fails while the memory is moved
out. This was never tried on a GPU."""
import _inprocess

_inprocess.under_double(__file__)
runs = _inprocess.load()

import ctypes
import gc
import inspect

import comfy.hooks
import comfy.model_management as mm
import comfy.model_patcher
import torch

import memstow
from memstow_pack import points as p, report

registry, points, cpu = runs.registry, runs.points, torch.device("cpu")
double = ctypes.CDLL(None)
double.memstow_double_on_device.argtypes = [ctypes.c_uint32, ctypes.c_uint64]
ModelPatcher = comfy.model_patcher.ModelPatcher


class Elsewhere(torch.Tensor):
    """A double of device memory. A read while the memory is moved out raises an error, because on a real device it
    would break the context."""
    is_out = False
    broken = 0
    HARMLESS = {"numel", "nelement", "element_size", "dim", "size", "stride", "is_floating_point", "untyped_storage",
                "data_ptr", "__get__", "is_contiguous", "requires_grad_", "__repr__", "__hash__"}

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        if Elsewhere.is_out and function.__name__ not in cls.HARMLESS:
            Elsewhere.broken += 1
            raise RuntimeError(f"error 700: an illegal memory access was encountered: {function.__name__}")
        return super().__torch_function__(function, types, arguments, options or {})


# When memstow.restore() has returned, the double's memory counts as back on the device.
restore = memstow.restore


def restoring(owner):
    given = restore(owner)
    Elsewhere.is_out = False
    return given


memstow.restore = restoring


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 4).as_subclass(Elsewhere), requires_grad=False)
        self.bias = torch.nn.Parameter(torch.ones(4).as_subclass(Elsewhere), requires_grad=False)

    def forward(self, x):
        return x @ self.weight + self.bias


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Sequential(Layer(), Layer())

    def forward(self, x):
        return self.inner(x)


KEY, DIFF = "inner.0.weight", {"inner.0.weight": ("diff", (torch.ones(4, 4),))}


def loaded():
    """A model that is loaded, patched, and out."""
    mm.current_loaded_models.clear()
    patcher = ModelPatcher(Model(), cpu, cpu)
    patcher.add_patches(DIFF)
    mm.load_models_gpu([patcher])
    identity = registry.find(patcher.model)
    double.memstow_double_on_device(identity.owner.id, 1 << 20)
    memstow.stow(identity.owner)
    Elsewhere.is_out = True
    points.note(identity, report.figures_of(identity.owner))
    assert identity.stowed and points.out
    return patcher, identity


def hook():
    return comfy.hooks.HookGroup()


# The methods of a patcher that access weights → arguments for a call. None means that this test does not call the
# method.
METHODS = {"get_model_object": (KEY,), "add_patches": (DIFF,), "get_key_patches": (), "model_state_dict": (),
           "patch_weight_to_device": (KEY, cpu), "load": (cpu,), "patch_model": (cpu,), "unpatch_model": (cpu,),
           "partially_unload": (cpu, 1), "partially_load": (cpu, 1 << 20), "calculate_weight": ([], torch.ones(4), KEY),
           "pre_run": (), "prepare_state": (torch.zeros(1),), "restore_hook_patches": (),
           "prepare_hook_patches_current_keyframe": None, "register_all_hook_patches": None, "add_hook_patches": None,
           "get_combined_hook_patches": (None,), "apply_hooks": (None,), "patch_hooks": (None,),
           "patch_cached_hook_weights": None, "clear_cached_hook_weights": (), "patch_hook_weight_to_device": None,
           "unpatch_hooks": (), "clean_hooks": (), "cleanup": ()}
assert set(METHODS) == set(p.OF_PATCHERS)

# Methods that do not access weights. A new method in neither list needs a look by a developer.
HARMLESS = {
    "__init__", "__del__", "model_size", "get_ram_usage", "loaded_size", "lowvram_patch_counter", "clone", "is_clone",
    "clone_has_same_weights", "memory_required", "add_object_patch", "set_model_compute_dtype", "add_weight_wrapper",
    "model_patches_models", "model_dtype", "current_loaded_device", "_load_list", "use_ejected", "set_hook_mode",
    "pin_weight_to_device", "unpin_weight", "unpin_all_weights"}
PREFIXES = ("set_model_", "add_callback", "remove_callback", "get_callback", "get_all_callback", "add_wrapper",
            "remove_wrapper", "get_wrapper", "get_all_wrapper", "set_attach", "remove_attach", "get_attach",
            "set_inject", "remove_inject", "get_inject", "set_additional", "remove_additional", "get_additional",
            "get_nested")
unknown = [name for name, _ in inspect.getmembers(ModelPatcher, inspect.isfunction) if name not in METHODS
           and name not in p.SOMETIMES and name not in HARMLESS and not name.startswith(PREFIXES)]
assert not unknown, f"does it touch weights? {unknown}"


def with_patches(patcher):
    patcher.set_model_attn1_patch(lambda *arguments: arguments)
    return patcher


def with_injections(patcher):
    patcher.set_injections("test", [comfy.model_patcher.PatcherInjection(lambda patcher: None, lambda patcher: None)])
    return patcher


def other():
    """An object that contains this model, such as a pipeline or a wrapper of a custom node."""
    return torch.nn.ModuleList([patcher.model])


WAYS = {f"patcher.{name}": (lambda name=name, arguments=arguments: getattr(patcher, name)(*arguments))
        for name, arguments in METHODS.items() if arguments is not None}
WAYS.update({
    "patcher.detach": lambda: patcher.detach(),
    "patcher.model_patches_to": lambda: with_patches(patcher).model_patches_to(cpu),
    "patcher.inject_model": lambda: with_injections(patcher).inject_model(),
    "patcher.eject_model": lambda: with_injections(patcher).eject_model(),
    "load_models_gpu": lambda: mm.load_models_gpu([patcher]),
    "load_models_gpu of a clone": lambda: mm.load_models_gpu([patcher.clone()]),
    "load_models_gpu of a patched clone": lambda: patched(patcher.clone()),
    "LoadedModel.model_load": lambda: mm.current_loaded_models[0].model_load(),
    "LoadedModel.model_unload": lambda: mm.current_loaded_models[0].model_unload(),
    "LoadedModel.model_unload of a part": lambda: mm.current_loaded_models[0].model_unload(1),
    "LoadedModel.model_use_more_vram": lambda: mm.current_loaded_models[0].model_use_more_vram(1 << 20),
    "free_memory": lambda: mm.free_memory(1e30, cpu),
    "unload_all_models": lambda: mm.free_memory(1e30, mm.get_torch_device()),
    "clone().add_patches": lambda: patcher.clone().add_patches(DIFF),
    "model.to": lambda: patcher.model.to(torch.float16),
    "model.half": lambda: patcher.model.half(),
    "a part's to": lambda: patcher.model.inner[1].to(torch.float16),
    "what has it in it, to": lambda: other().to(torch.float16),
    "model.state_dict": lambda: patcher.model.state_dict(),
    "a part's state_dict": lambda: patcher.model.inner[0].state_dict(),
    "what has it in it, load_state_dict": lambda: other().load_state_dict({}, strict=False),
    "model()": lambda: patcher.model(torch.ones(1, 4)),
    "a part()": lambda: patcher.model.inner[1](torch.ones(1, 4)),
})


def patched(clone):
    clone.add_patches(DIFF)
    mm.load_models_gpu([clone])


for name, way in WAYS.items():
    patcher, identity = loaded()
    way()
    assert (not Elsewhere.is_out and not points.out and not points.parts
            and not identity.stowed), f"{name} restores nothing"
    assert not Elsewhere.broken, name
    assert not any(module._forward_pre_hooks for module in patcher.model.modules()), name

# If the device has no memory for the model, each call is refused before it has touched anything. The model stays out.
# It comes back when the device has memory.
for name, way in WAYS.items():
    patcher, identity = loaded()
    double.memstow_double_device_full(1)
    try:
        way()
    except memstow.Error as error:
        assert "no device memory" in str(error), error
    else:
        raise AssertionError(f"{name} goes on without its memory")
    assert Elsewhere.is_out and identity.key in points.out and identity.stowed and not Elsewhere.broken, name
    double.memstow_double_device_full(0)
    way()
    assert not points.out and not Elsewhere.broken, name

# A model that does not come back is named with its file, which tells models of one name apart.
patcher, identity = loaded()
identity.origin, memstow.restore = "a.st", lambda owner: 0
try:
    patcher.get_model_object(KEY)
except memstow.Error as error:
    assert f"{identity.owner.name} (a.st): {1 << 20} bytes are still out of the device" in str(error), error
else:
    raise AssertionError("it goes on without its memory")
memstow.restore = restoring
patcher.get_model_object(KEY)
assert not points.out and not Elsewhere.broken

# Calls that touch no weights bring nothing back.
patcher, identity = loaded()
clone = patcher.clone()
assert patcher.is_clone(clone) and patcher.model_size() and patcher.loaded_size() is not None
mm.loaded_models()
stranger = ModelPatcher(torch.nn.Linear(4, 4), cpu, cpu)
mm.load_models_gpu([stranger])
stranger.model.to(torch.float16).state_dict()
patcher.detach(False)
patcher.model_patches_to(cpu)
patcher.pin_weight_to_device(KEY)
patcher.unpin_all_weights()
del clone
gc.collect()
assert points.out and Elsewhere.is_out, "brought back in vain"

# If the device is full when a model is used, other models make room first: models that are loaded on the device are
# unloaded. A model that was moved out of the device takes no room there, so it is not unloaded.
double.memstow_double_device_full(1)
calls, before = [], p.unload.unload


def unloading(goes):
    calls.append([goes(patcher) for patcher in (patcher, stranger)])
    double.memstow_double_device_full(0)
    return before(goes)


p.unload.unload = unloading
mm.load_models_gpu([patcher])
assert calls == [[False, True]] and not points.out, calls
p.unload.unload = before

# A model that dies while it is out is forgotten.
patcher, identity = loaded()
mm.current_loaded_models.clear()
del patcher
gc.collect()
assert not points.out and not points.parts and not points.hooks

# A rescue by memstow moves idle models out. A model that came back because it is used, or that could not be moved out,
# is not idle. If a rescue moves a model out just after the model came back, the model comes back once more.
Elsewhere.is_out = False
patcher, identity = loaded()
identity.set_idle(True)
patcher.get_model_object(KEY)
assert not points.out and not double.memstow_double_idle(identity.owner.id)
identity.set_idle(True)
points.note(identity, report.figures_of(identity.owner)) # it could not be moved out
assert not points.out and not double.memstow_double_idle(identity.owner.id)


def beside_a_rescue(owner):
    given = restoring(owner)
    if double.memstow_double_idle(identity.owner.id):
        memstow.stow(owner)
        Elsewhere.is_out = True
    return given


patcher, identity = loaded()
identity.set_idle(True)
memstow.restore = beside_a_rescue
patcher.get_model_object(KEY)
assert not Elsewhere.is_out and not points.out and not report.figures_of(identity.owner).device_stowed_bytes

# If a rescue moves a model out just before the model is declared in use, the pack learns that the model is out.
patcher, identity = loaded()
patcher.get_model_object(KEY)
identity.set_idle(True)
seen = report.figures_of(identity.owner)
memstow.stow(identity.owner)
Elsewhere.is_out = True
points.note(identity, seen)
assert identity.key in points.out
patcher.get_model_object(KEY)
assert not Elsewhere.is_out and not points.out and not Elsewhere.broken
