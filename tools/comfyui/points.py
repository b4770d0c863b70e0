"""Restore points: functions before which a model's device memory is brought back. A GPU cannot fault memory back: if a
kernel touches memory that memstow has moved out of the device, the kernel's context breaks. So a model's device memory
is brought back before ComfyUI touches it in any way. If that fails, the use is refused with an exception, the model
stays out, and the next prompt tries again."""
import errno
import functools
import threading
import weakref
from typing import Any, Callable, Optional

from . import memstow, report, unload
from .hooks import quietly, wrap
from .registry import Identity, Registry

# Methods of a patcher that read, write, move or return its model's weights. Methods that pin weights are left out: they
# use host memory only.
OF_PATCHERS = ("get_model_object", "add_patches", "get_key_patches", "model_state_dict", "patch_weight_to_device",
               "load", "patch_model", "unpatch_model", "partially_unload", "partially_load", "calculate_weight",
               "pre_run", "prepare_state", "restore_hook_patches", "prepare_hook_patches_current_keyframe",
               "register_all_hook_patches", "add_hook_patches", "get_combined_hook_patches", "apply_hooks",
               "patch_hooks", "patch_cached_hook_weights", "clear_cached_hook_weights", "patch_hook_weight_to_device",
               "unpatch_hooks", "clean_hooks", "cleanup")


def _moves_patches(patcher: Any, *_arguments: Any, **_options: Any) -> bool:
    to = patcher.model_options["transformer_options"]
    return bool(to.get("patches") or to.get("patches_replace") or "model_function_wrapper" in patcher.model_options)


def _is_injected(patcher: Any, *_arguments: Any, **_options: Any) -> bool:
    return bool(patcher.injections)


# Methods that are restore points only on a condition. ComfyUI also calls them when a patcher dies, and then the model
# must not be brought back.
SOMETIMES: dict[str, Callable] = {
    "model_patches_to": _moves_patches, "inject_model": _is_injected, "eject_model": _is_injected,
    "detach": lambda patcher, unpatch_all=True: unpatch_all}
# Methods of any module: .to(), .cuda(), .half() and share_memory() call _apply().
OF_MODULES = ("_apply", "state_dict", "load_state_dict")


class Points:
    """The models that have memory out of a device. back() brings that memory back."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.out: "dict[int, Identity]" = {}    # by the id of the inner model
        self.hooks: dict[int, list] = {}
        self.parts: dict[int, Identity] = {}    # the same models, by the ids of the modules in them
        self.lock = threading.RLock()

    # ---- which models have memory out of a device

    def note(self, identity: Identity, figures: Any) -> None:
        """Notes after a move whether memory of the model is out of a device. If the model has device memory, and none
        of it is out, the model is declared not idle. If such a model were idle, memstow could move its memory out when
        the device is full (a rescue), and this pack would not notice."""
        identity.stowed = bool(figures.stowed_bytes)
        model = identity.model()
        with self.lock:
            if figures.device_stowed_bytes and model is not None and identity.key not in self.out:
                self.out[identity.key] = identity
                self.parts.update((id(module), identity) for module in model.modules())
                self.hooks[identity.key] = [module.register_forward_pre_hook(self._hook(identity))
                                            for module in model.modules()]
                weakref.finalize(model, self._forget, identity.key).atexit = False
            elif not figures.device_stowed_bytes:
                self._forget(identity.key)
        if figures.cuda_bytes and not figures.device_stowed_bytes:
            identity.set_idle(False)
            left = memstow.figures(identity.owner)
            if left.device_stowed_bytes: # a rescue took memory out in the meantime
                self.note(identity, left)

    def _forget(self, key: int) -> None:
        gone = self.out.pop(key, None)
        self.parts = {part: identity for part, identity in self.parts.items() if identity is not gone}
        for hook in self.hooks.pop(key, ()):
            hook.remove()

    def _hook(self, identity: Identity) -> Callable:
        """Makes a hook that brings the model back when code runs a part of it without loading it first."""
        def about_to_run(_module: Any, _arguments: Any) -> None:
            self.back(identity)
        return about_to_run

    # ---- bringing a model back

    def back(self, identity: Optional[Identity], makes_room: bool = False) -> None:
        """Brings all of the model's device memory back, or raises memstow.Error. With `makes_room`, unloads other
        models if the device has too little memory."""
        if identity is None or identity.key not in self.out:
            return
        with self.lock:
            if identity.key not in self.out:
                return
            try:
                self._restore(identity)
            except memstow.Error as error:
                if not makes_room or error.errno != errno.ENOMEM:
                    raise
                quietly(self._make_room)(identity)
                self._restore(identity)
            self._forget(identity.key)
            identity.stowed = False

    def _restore(self, identity: Identity) -> None:
        memstow.restore(identity.owner)
        identity.set_idle(False) # from now on no rescue takes it out again
        left = memstow.figures(identity.owner).device_stowed_bytes
        if left: # a rescue took memory out in the meantime
            memstow.restore(identity.owner)
            left = memstow.figures(identity.owner).device_stowed_bytes
        if left:
            name = report.label(identity.owner.name, identity.origin)
            raise memstow.Error(errno.EBUSY, f"{name}: {left} bytes are still out of the device")

    def _make_room(self, identity: Identity) -> None:
        """Unloads all other models from the devices. Models in self.out, whose memory memstow has moved off the
        devices, are left alone."""
        unload.unload(lambda patcher: id(patcher.model) != identity.key and id(patcher.model) not in self.out)
        unload.management().soft_empty_cache()

    def within(self, module: Any, is_deep: bool) -> set:
        """Of the models that have memory out of a device: those that contain this module. With `is_deep`, also those
        that have a part inside this module. `is_deep` is for functions that do not call themselves for each child of a
        module."""
        parts = module.modules() if is_deep else (module,)
        return {self.parts[id(part)] for part in parts if id(part) in self.parts}

    # ---- the restore points in ComfyUI's and PyTorch's functions

    def install(self) -> None:
        import comfy.model_patcher
        import torch
        points = self

        def of_patcher(before: Callable, touches: Optional[Callable] = None) -> Callable:
            def method(self: Any, *arguments: Any, **options: Any) -> Any:
                if points.out and (touches is None or touches(self, *arguments, **options)):
                    points.back(points.registry.find(getattr(self, "model", None)))
                return before(self, *arguments, **options)
            return method

        for name in OF_PATCHERS:
            wrap(comfy.model_patcher.ModelPatcher, name, of_patcher)
        for name, touches in SOMETIMES.items():
            wrap(comfy.model_patcher.ModelPatcher, name, functools.partial(of_patcher, touches=touches))

        def of_module(before: Callable) -> Callable:
            is_deep = before.__name__ == "load_state_dict" # _apply and state_dict call themselves for each child
            def method(self: Any, *arguments: Any, **options: Any) -> Any:
                for identity in points.within(self, is_deep) if points.out else ():
                    points.back(identity)
                return before(self, *arguments, **options)
            return method

        for name in OF_MODULES:
            wrap(torch.nn.Module, name, of_module)

        def loading(before: Callable) -> Callable:
            def load_models_gpu(models: Any, *arguments: Any, **options: Any) -> Any:
                # Models are brought back before load_models_gpu goes through its lists: at this moment other models can
                # still be unloaded to make room.
                for patcher in list(models) if points.out else ():
                    for needed in (patcher, *patcher.model_patches_models()):
                        points.back(points.registry.find(getattr(needed, "model", None)), makes_room=True)
                return before(models, *arguments, **options)
            return load_models_gpu

        wrap(unload.management(), "load_models_gpu", loading)
