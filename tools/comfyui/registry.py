"""Which models there are, whose memory theirs is, and which policy applies to each. Patchers and their inner models go
in, as hooks.py sees them; identities with an owner come out. Only weak references are held here, but for models that
somebody asked to keep. Bytes belong to the inner model; a policy is found by `Registry.ruling`, and nowhere else."""
import dataclasses
import os
import traceback
import weakref
from typing import Any, Iterator, Optional

from . import flags, log, memstow

POLICIES = ("keep", "stow", "free")
TYPES = ("MODEL", "CLIP", "VAE", "CONTROLNET")


@dataclasses.dataclass(frozen=True)
class Setting:
    """A policy that somebody set on a model, and who: the id of a MemstowPolicy node, or None."""
    policy: str
    priority: int = 0
    source: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class Ruling:
    """The policy that applies to a model, and the rule it was found by: a word of docs/decisions.md, and for people."""
    policy: Optional[str]
    priority: int
    rule: str
    detail: str = ""
    flag: Optional[flags.Reading] = None # also where another rule counts

    @property
    def effective(self) -> str:
        return self.policy or "keep"


def defaults(environment=os.environ) -> dict:
    """What MEMSTOW_POLICY and MEMSTOW_POLICY_<TYPE> say; a word that is no policy is reported and left out."""
    found = {}
    for kind in ("", *TYPES):
        name = f"MEMSTOW_POLICY_{kind}" if kind else "MEMSTOW_POLICY"
        word = environment.get(name, "").strip().lower()
        if word in POLICIES:
            found[kind] = word
        elif word:
            log.warning("memstow: %s=%s is none of %s: left out", name, word, ", ".join(POLICIES))
    return found


def for_one_run(extra: Any) -> dict:
    """What extra_data["memstow"] says: a policy for all models, or {"MODEL": "free", "CLIP": "keep", "": …}."""
    if isinstance(extra, str):
        extra = {"": extra}
    if extra is None:
        return {}
    if not isinstance(extra, dict):
        log.warning('memstow: extra_data["memstow"]: %.40s is left out; it is a policy (%s) or {"MODEL": "free", …}',
                    extra, ", ".join(POLICIES))
        return {}
    words = {("" if key in ("policy", "default") else str(key).upper()): value for key, value in extra.items()}
    known = {key: value for key, value in words.items() if key in ("", *TYPES) and value in POLICIES}
    for key in words.keys() - known.keys():
        log.warning('memstow: extra_data["memstow"]: %.40s: %.40s is left out; types are default, %s, policies %s',
                    key or "default", words[key], ", ".join(TYPES), ", ".join(POLICIES))
    return known


class Identity:
    """One inner model that is alive, and its owner."""

    def __init__(self, owner, model, kind: str, origin: str) -> None:
        self.owner, self.kind, self.origin = owner, kind, origin
        self.model = weakref.ref(model)
        self.key = id(model)
        self.patchers: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary() # an ordered set: the oldest first
        self.flags: dict = {}           # those that were seen last: id of the object → value
        self.setting: Optional[Setting] = None
        self.held: Any = None           # a strong reference, to a model that somebody asked to keep
        # with it, the cached outputs of nodes that lead to it: without them it is of no use
        self.outputs: dict = {}
        self.assigned: frozenset = frozenset()
        self.changed = True             # its weights may lie elsewhere than when they were assigned
        self.siblings: list = []        # weak: models that the same node made with it
        # (key, place in the result, weak reference) of a checkpoint that it is part of
        self.checkpoint: Optional[tuple] = None
        self.pushed: Optional[tuple] = None
        self.stowed = False
        self.idle = False               # its owner is declared idle, until the next run begins
        self.kept = False               # the last trigger kept it, so its death is news

    def let_go(self) -> None:
        """Nobody asks to keep it any more: what dies of that is not lost."""
        self.kept = False
        self.held, self.outputs = None, {}

    def set_idle(self, idle: bool) -> None:
        """Whether nobody uses it until this is called with False."""
        if idle != self.idle:
            self.owner.set_idle(idle)
            self.idle = idle

    def ids(self) -> set:
        """The ids of all that is this model: of live objects, for as long as the caller holds them."""
        return {self.key, *(id(patcher) for patcher in self.patchers)}

    def __repr__(self) -> str:
        return f"<{self.kind} {self.owner.name} owner {self.owner.id}>"


class Registry:
    def __init__(self) -> None:
        self.identities: dict[int, Identity] = {}
        self.settings: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary() # patcher → Setting, the latest last
        self.defaults = defaults()
        self.this_run: dict = {}
        self.phase = "starting"
        self.trace = lambda kind, **values: None
        self.on_gone = lambda owner, ranges: None # a model died, which had these

    # ---- who is there

    def find(self, model) -> Optional[Identity]:
        identity = self.identities.get(id(model))
        return identity if identity is not None and identity.model() is model else None

    def add(self, model, patcher=None, kind: str = "MODEL", origin: str = "") -> tuple[Identity, bool]:
        """The identity of an inner model, and whether it is new."""
        identity = self.find(model)
        is_new = identity is None
        if is_new:
            name = f"{kind} {type(model).__name__}"
            owner = memstow.owner(name, "model", origin, keys=(id(model), id(patcher) if patcher is not None else 0))
            identity = Identity(owner, model, kind, origin)
            self.identities[id(model)] = identity
            weakref.finalize(model, self._gone, identity).atexit = False
        if patcher is not None:
            identity.patchers.setdefault(patcher)
        return identity, is_new

    def _gone(self, identity: Identity) -> None:
        """The inner model died: whatever gets its id next is another model. Runs wherever the last reference was
        dropped."""
        if self.identities.get(identity.key) is identity:
            del self.identities[identity.key]
        try:
            if identity.kept:
                stack = [
                    f"{f.name} {os.path.basename(f.filename)}:{f.lineno}"
                    for f in traceback.extract_stack(limit=12)[:-1]
                ]
                self.trace("LOST", owner=identity.owner.id, name=identity.owner.name, patcher=0, inner=identity.key,
                           phase=self.phase, stack=stack[::-1])
            identity.owner.retire()
            self.on_gone(identity.owner, identity.assigned)
        except OSError as error:
            log.debug("a model that died: %s", error)

    def all(self) -> list[Identity]:
        return [identity for identity in list(self.identities.values()) if identity.model() is not None]

    def by_owner(self, number: int) -> Optional[Identity]:
        return next((identity for identity in self.all() if identity.owner.id == number), None)

    # ---- policies

    def set(self, model, patcher, setting: Setting) -> Optional[Identity]:
        """Sets a policy on the model: on this patcher exactly, and on the inner model for those that do not descend
        from it. Says so in the trace when it is news: what is said again is not."""
        identity = self.find(model)
        if identity is None:
            identity, _ = self.add(model, patcher)
        exact = self.settings.get(patcher) if patcher is not None else identity.setting
        if exact == setting and identity.setting is not None:
            return identity
        if patcher is not None:
            self.settings.pop(patcher, None)
            self.settings[patcher] = setting
        identity.setting = setting
        self._trace_set(identity, patcher, setting.policy, setting.source)
        return identity

    def say(self, value: Any, setting: Setting) -> bool:
        """Sets a policy on all models in what nodes pass as one; whether there is any."""
        found = list(patchers_in(value))
        for patcher, model in found:
            self.set(model, patcher, setting)
        return bool(found)

    def _trace_set(self, identity: Identity, patcher, policy: str, source: Optional[str]) -> None:
        self.trace("SET", owner=identity.owner.id, patcher=id(patcher) if patcher is not None else 0,
                   inner=identity.key, policy=policy, node=source)

    def clear(self, identity: Identity, source: str) -> None:
        """The node that had set the policy is gone, or sets another model's now."""
        for patcher in list(identity.patchers):
            if (setting := self.settings.get(patcher)) and setting.source == source:
                del self.settings[patcher]
                self._trace_set(identity, patcher, "none", source)
        if identity.setting and identity.setting.source == source:
            others = self._set_on(identity)
            identity.setting = self.settings[others[-1]] if others else None
            self._trace_set(identity, None, "none", source)

    def _set_on(self, identity: Identity) -> list:
        """The patchers of a model that a policy was set on, the latest last."""
        return [patcher for patcher in list(self.settings) if patcher in identity.patchers]

    def note_flags(self, node: Optional[str] = None) -> None:
        """What other packs have set by now, in the trace."""
        for identity in self.all():
            flags.note(identity, self.trace, node)

    def ruling(self, identity: Identity, patcher=None) -> Ruling:
        """The policy of a model, looked up from the patcher that was found: this run → the exact patcher → those it was
        cloned from → the inner model → a flag, on the same in that order → the default of the type → the default →
        nothing said."""
        flag = flags.read(patcher, identity.model())
        return dataclasses.replace(self._ruling(identity, patcher, flag), flag=flag)

    def _ruling(self, identity: Identity, patcher, flag: Optional[flags.Reading]) -> Ruling:
        for kind in (identity.kind, ""):
            if kind in self.this_run:
                return Ruling(self.this_run[kind], 0, "run", "extra_data of this run")
        for ancestor in flags.lineage(patcher):
            if setting := self.settings.get(ancestor):
                return Ruling(setting.policy, setting.priority, "patcher" if ancestor is patcher else "parent")
        if setting := identity.setting:
            return Ruling(setting.policy, setting.priority, "inner")
        if flag is not None:
            return Ruling(flag.policy, 0, "flag", f"{flags.FLAG} on the {flag.where}")
        for kind in (identity.kind, ""):
            if kind in self.defaults:
                return Ruling(self.defaults[kind], 0, "default", f"MEMSTOW_POLICY{'_' if kind else ''}{kind}")
        return Ruling(None, 0, "default", "nothing said")

    def found(self, identity: Identity, loaded: list) -> Any:
        """The patcher that a trigger looks a model up by: the one in ComfyUI's list of loaded models, else the one that
        a policy was set on last, else the youngest that has a flag, else the oldest."""
        model = identity.model()
        for patcher in loaded:
            if patcher.model is model:
                return patcher
        if set_on := self._set_on(identity):
            return set_on[-1]
        patchers = list(identity.patchers)
        flagged = [patcher for patcher in patchers if flags.value_on(patcher) is not None]
        return flagged[-1] if flagged else patchers[0] if patchers else None


def patchers_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """(patcher, inner model) of what ComfyUI passes between nodes as a model: a ModelPatcher, or a CLIP, VAE,
    ControlNet… that has one; (None, module) for a bare module or what has one."""
    import torch
    for attribute in ("patcher", "control_model_wrapped", None):
        patcher = value if attribute is None else getattr(value, attribute, None)
        model = getattr(patcher, "model", None)
        if isinstance(model, torch.nn.Module) and hasattr(patcher, "model_options"):
            yield patcher, model
            return
    for module in (value, *(getattr(value, name, None) for name in ("model", "t2i_model", "control_model"))):
        if isinstance(module, torch.nn.Module):
            yield None, module
            return
