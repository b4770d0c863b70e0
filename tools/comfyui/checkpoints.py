"""Checkpoints, of which one model is freed and another stays. A loader's cached output has all of them, so that it goes
when one goes; when the loader runs again, only what is missing is loaded, and the others are what they were. In: what
comfy.sd.load_checkpoint_guess_config is called with, and which models stay; out: the same tuple as ever."""
import os
import weakref
from typing import Any, Callable, Iterable, Optional

from .hooks import quietly, wrap
from .registry import Identity, Registry, patchers_in

OPTIONS = ("output_model", "output_clip", "output_vae") # in the order of the result


def key_of(path: str, options: dict) -> Optional[tuple]:
    """What must be the same for two calls to give the same models; None where the file cannot be looked at."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    asked = {name: value for name, value in options.items() if name not in OPTIONS}
    return (os.path.realpath(path), found.st_mtime_ns, found.st_size, repr(sorted(asked.items())))


class Parts:
    """Models of checkpoints whose loader's output is gone: key → place in the result → (model as it was returned, its
    identity)."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.kept: dict[tuple, dict] = {}
        self.aged: set = set() # keys that were there when the last run ended

    def keep(self, going: Iterable[Identity]) -> None:
        """The siblings of what is freed are held until the checkpoint is loaded again."""
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
        """After a run: parts of which nothing was said, and that this run did not want, are dropped as ComfyUI drops
        outputs."""
        for key in self.aged & set(self.kept):
            self.kept[key] = {place: part for place, part in self.kept[key].items() if part[1].held is not None}
        self.kept = {key: places for key, places in self.kept.items() if places}
        self.aged = set(self.kept)

    def clear(self, everything: bool) -> None:
        """The button: everything, or what nobody asked to keep."""
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
    """The models that the same node made with it, and that are alive."""
    return [other for reference in identity.siblings if (other := reference()) is not None
            and other.model() is not None]
