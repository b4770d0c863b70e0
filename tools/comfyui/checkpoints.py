"""Loads only the missing models of a checkpoint, when one of its models was freed and another model stayed. A loader's
cached output refers to all models of the checkpoint, so freeing one model drops the output. When the loader runs again,
its result has the models that stayed, as the same objects as before. In: the arguments of
comfy.sd.load_checkpoint_guess_config, and the models that stay. Out: the function's result, a tuple as without
memstow."""
import os
import weakref
from typing import Any, Callable, Iterable, Optional

from .hooks import quietly, wrap
from .registry import Identity, Registry, patchers_in

OPTIONS = ("output_model", "output_clip", "output_vae") # in the order of the result


def key_of(path: str, options: dict) -> Optional[tuple]:
    """The key of a call of ComfyUI's loader of checkpoints. Two calls with equal keys give the same models. None if the
    file's size and time cannot be read."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    asked = {name: value for name, value in options.items() if name not in OPTIONS}
    return (os.path.realpath(path), found.st_mtime_ns, found.st_size, repr(sorted(asked.items())))


class Parts:
    """The models that stayed when the output of their loader was dropped. `kept`: key of a call of the loader →
    {place in the call's result → (the object at this place, the model's identity)}."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.kept: dict[tuple, dict] = {}
        self.aged: set = set() # keys of `kept` at the last age(): the next age() drops their models that are not held

    def keep(self, going: Iterable[Identity]) -> None:
        """Holds the siblings of freed models (those that the same loader made with them) until the checkpoint is loaded
        again, or age() drops them. `going`: the models that are freed."""
        going = list(going)
        for identity in going:
            for sibling in siblings(identity):
                if sibling not in going and sibling.checkpoint and (value := sibling.checkpoint[2]()) is not None:
                    key, place, _value = sibling.checkpoint
                    self.kept.setdefault(key, {})[place] = (value, sibling)
                    self.aged.discard(key)
        for key, places in list(self.kept.items()):
            self.kept[key] = {place: part for place, part in places.items() if part[1] not in going}

    def age(self) -> None:
        """Call it after a run. It drops the models that this run did not use, unless their policy is keep or stow.
        ComfyUI drops unused outputs in the same way."""
        for key in self.aged & set(self.kept):
            self.kept[key] = {place: part for place, part in self.kept[key].items() if part[1].held is not None}
        self.kept = {key: places for key, places in self.kept.items() if places}
        self.aged = set(self.kept)

    def clear(self, everything: bool) -> None:
        """For ComfyUI's buttons that free models: lets go of the models. If `everything` is false, it does not let go
        of models that are to be kept."""
        self.kept = {} if everything else {
            key: {place: part for place, part in places.items() if part[1].held is not None}
            for key, places in self.kept.items()}

    @quietly
    def remember(self, key: tuple, result: Any) -> None:
        found = []
        for place, value in enumerate(result[:len(OPTIONS)]):
            for _patcher, model in patchers_in(value) if value is not None else ():
                if identity := self.registry.find(model):
                    identity.checkpoint = (key, place, weakref.ref(value))
                    found.append(identity)
        for identity in found:
            identity.siblings = [weakref.ref(other) for other in found if other is not identity]

    def install(self) -> None:
        import comfy.sd
        parts = self

        def loading(before: Callable) -> Callable:
            def load_checkpoint_guess_config(ckpt_path: Any, *arguments: Any, **options: Any) -> Any:
                key = quietly(key_of)(str(ckpt_path), options) if not arguments else None
                kept = parts.kept.pop(key, {}) if key is not None else {}
                kept = {place: value for place, (value, _identity) in kept.items() if options.get(OPTIONS[place], True)}
                result = before(ckpt_path, *arguments, **{**options, **{OPTIONS[place]: False for place in kept}})
                if result is not None and kept:
                    result = tuple(kept.get(place, value) for place, value in enumerate(result))
                if result is not None and key is not None:
                    parts.remember(key, result)
                return result
            return load_checkpoint_guess_config

        wrap(comfy.sd, "load_checkpoint_guess_config", loading)


def siblings(identity: Identity) -> list[Identity]:
    """The live models that the same node made together with this one."""
    return [other for reference in identity.siblings if (other := reference()) is not None
            and other.model() is not None]
