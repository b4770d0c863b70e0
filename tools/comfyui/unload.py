"""Frees models whose policy says so. It also replaces ComfyUI's functions that free everything: if any model has the
policy stow or free, the replacements leave kept models alone. All functions that free something run on the worker
thread. loaded() and would_take() run on the server's thread, too."""
import os
from typing import Any, Callable, Iterable

from . import caches, log, memstow
from .checkpoints import Parts
from .hooks import quietly, wrap
from .registry import Identity, Registry


def management() -> Any:
    import comfy.model_management
    return comfy.model_management


def entries() -> list[tuple[Any, Any]]:
    """The entries of ComfyUI's list of loaded models, each with its patcher. An entry refers to its patcher weakly, so
    the patcher may be gone at the next look. Entries with a dead patcher are left out: they all compare equal, so one
    of them in a list such as keep_loaded would stand for all of them."""
    pairs = [(entry, entry.model) for entry in list(management().current_loaded_models)]
    return [(entry, patcher) for entry, patcher in pairs if patcher is not None]


def loaded() -> list:
    """The patchers of loaded models. The list keeps the patchers alive, so drop the list before a model is to die."""
    return [patcher for _entry, patcher in entries()]


def unload(goes: Callable[[Any], bool]) -> int:
    """Unloads from every device the models for whose patchers `goes` is true. Other models stay. Returns the number of
    models that it unloaded."""
    mm = management()
    going = [entry for entry, patcher in entries() if goes(patcher)]
    for device in {entry.device for entry in going}:
        staying = [entry for entry, patcher in entries() if not goes(patcher)]
        mm.free_memory(1e30, device, keep_loaded=staying)
    return len(going)


def drop(identities: Iterable[Identity], executor: Any) -> list[str]:
    """Drops ComfyUI's own references to these models: their entries in the list of loaded models, and every cached
    output that reaches them. Returns the classes of the nodes whose outputs were dropped."""
    targets, models = set(), set()
    for identity in identities:
        identity.let_go()
        targets |= identity.ids()
        models.add(identity.key)
    if not targets:
        return []
    unload(lambda patcher: id(patcher.model) in models)
    removed = caches.evict(executor.caches, targets) if executor is not None else []
    return removed


def takes_all(environment=os.environ) -> bool:
    """Whether MEMSTOW_FREE_BUTTON is "all". Another word is logged and left out."""
    word = environment.get("MEMSTOW_FREE_BUTTON", "").strip().lower()
    if word not in ("", "all"):
        log.warning("memstow: MEMSTOW_FREE_BUTTON=%.40s is not all: left out", word)
    return word == "all"


class Button:
    """Replaces ComfyUI's unload_all_models() and PromptExecutor.reset() by versions that respect policies. These two
    functions do the work of ComfyUI's two buttons that free models, and of memstow.full_cleanup()."""

    def __init__(self, registry: Registry, parts: Parts) -> None:
        self.registry = registry
        self.takes_all = takes_all()
        self.parts = parts
        self.pressed = False    # a get_flags() has reported a pressed button, and no prompt has begun since

    def goes(self, patcher: Any) -> bool:
        identity = self.registry.find(getattr(patcher, "model", None))
        return identity is not None and self.registry.ruling(identity, patcher).effective != "keep"

    def is_selective(self) -> bool:
        """Whether unload_all_models() and reset() leave kept models alone. They do if any model is to be stowed or
        freed. They do not while a button is pressed and MEMSTOW_FREE_BUTTON is "all"."""
        if self.pressed and self.takes_all:
            return False
        registry, patchers = self.registry, loaded()
        return any(registry.ruling(i, registry.found(i, patchers)).effective != "keep" for i in registry.all())

    def keepers(self) -> list[Identity]:
        registry, patchers = self.registry, loaded()
        return [i for i in registry.all() if registry.ruling(i, registry.found(i, patchers)).effective == "keep"]

    def would_take(self) -> dict[str, list[int]]:
        """The owners of the models that ComfyUI's two buttons would take now. "unload": models that would leave
        ComfyUI's list of loaded models. "free": models that would leave memory."""
        registry, patchers = self.registry, loaded()
        policies = {i: registry.ruling(i, registry.found(i, patchers)).effective for i in registry.all()}
        is_selective = not self.takes_all and any(policy != "keep" for policy in policies.values())
        going = [i for i, policy in policies.items() if not is_selective or policy != "keep"]
        keys = {id(patcher.model) for patcher in patchers}
        return {"unload": [i.owner.id for i in going if i.key in keys],
                "free": [i.owner.id for i in going if i.held is None or self.takes_all]}

    def _asked_for(self, everything: bool) -> None:
        """Lets go of the models that a button takes: they are not reported as lost, because the user asked to drop
        them. With `everything` (MEMSTOW_FREE_BUTTON=all), these include models that were to be kept."""
        for identity in self.registry.all():
            if everything or identity.held is None:
                identity.let_go()
        self.parts.clear(everything)

    def _asked_for_some(self) -> None:
        """Marks the models that a button takes, so that they are not reported as lost. This is for a button that leaves
        kept models alone. The policies are read again, because they may have changed since the last trigger."""
        keepers = self.keepers()
        for identity in self.registry.all():
            if identity.held is None and identity not in keepers:
                identity.kept = False

    def install(self) -> None:
        button = self
        import execution

        def selective(before: Callable) -> Callable:
            def unload_all_models(*arguments: Any, **options: Any) -> Any:
                if not quietly(button.is_selective)():
                    return before(*arguments, **options)
                count = unload(button.goes)
                log.info(
                    "memstow: models unloaded: %d; those that are kept stay (MEMSTOW_FREE_BUTTON=all takes them, too)",
                    count)
                return None
            return unload_all_models

        wrap(management(), "unload_all_models", selective)

        def resetting(before: Callable) -> Callable:
            def reset(self: Any, *arguments: Any, **options: Any) -> Any:
                is_selective = hasattr(self, "caches") and bool(quietly(button.is_selective)())
                kept = quietly(button.outputs_of_keepers)(self) if is_selective else None
                if is_selective:
                    quietly(button._asked_for_some)()
                if hasattr(self, "caches") and not is_selective:
                    quietly(button._asked_for)(button.pressed and button.takes_all)
                result = before(self, *arguments, **options)
                if kept:
                    quietly(caches.put_back)(self.caches, kept)
                return result
            return reset

        wrap(execution.PromptExecutor, "reset", resetting)

        def emptying(before: Callable) -> Callable:
            def soft_empty_cache(*arguments: Any, **options: Any) -> Any:
                # otherwise PyTorch keeps the cached memory in the pools of unloaded models
                quietly(memstow.drop_pools)()
                with memstow.outside_pools():
                    return before(*arguments, **options)
            return soft_empty_cache

        wrap(management(), "soft_empty_cache", emptying)

    def outputs_of_keepers(self, executor: Any) -> dict:
        targets = set().union(*(identity.ids() for identity in self.keepers()), ())
        return caches.of_models(executor.caches, targets)
