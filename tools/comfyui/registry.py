"""The models, their owners, and the policy of each. A patcher is a ModelPatcher of ComfyUI; the torch module inside it
is the inner model. Several patchers (clones) can share one inner model. Memory belongs to the inner model. In: patchers
and inner models that hooks.py sees. Out: identities, each an inner model with its owner. References to models are weak,
except for models that are to be kept. Only `Registry.ruling` finds the policy of a model."""
import dataclasses
import os
import traceback
import weakref
from typing import Any, Iterator, Optional

from . import flags, log, memstow

POLICIES = ("keep", "stow", "free")
MOST_PRIORITY = 1000
CHOSEN = "chosen in the side bar"
TYPES = ("MODEL", "CLIP", "VAE", "CONTROLNET")


@dataclasses.dataclass(frozen=True)
class Setting:
    """A policy that was set on a model, and its source: the id of a MemstowPolicy node, or None. `chosen`: the user
    chose it in ComfyUI's page."""
    policy: str
    priority: int = 0
    source: Optional[str] = None
    chosen: bool = False


@dataclasses.dataclass(frozen=True)
class Ruling:
    """The policy that applies to a model, and the rule that led to it. `rule` is a word of docs/decisions.md, `detail`
    a text for people."""
    policy: Optional[str]
    priority: int
    rule: str
    detail: str = ""
    flag: Optional[flags.Reading] = None # a flag that was found, even if another rule decides

    @property
    def effective(self) -> str:
        return self.policy or "keep"


def defaults(environment=os.environ) -> dict:
    """The policies in MEMSTOW_POLICY and MEMSTOW_POLICY_<TYPE>. A word that is not a policy is logged and left out."""
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
    """The policies in extra_data["memstow"]. This value is one policy for all models, or a policy for each type of
    model, such as {"MODEL": "free", "CLIP": "keep", "": "stow"}. The key "" is for all other types."""
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
    """One live inner model, and its owner."""

    def __init__(self, owner, model, kind: str, origin: str) -> None:
        self.owner, self.kind, self.origin = owner, kind, origin
        self.file_key: Any = None       # the files that it was loaded from, as a key of choices.py
        self.model = weakref.ref(model)
        self.key = id(model)
        self.patchers: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary() # an ordered set, the oldest first
        self.flags: dict = {}           # the flags at the last reading: id of the object → value
        self.setting: Optional[Setting] = None
        self.held: Any = None           # a strong reference to a model that is to be kept
        # the cached outputs that lead to the model, by place: without them ComfyUI would have to load the model again
        self.outputs: dict = {}
        self.assigned: frozenset = frozenset()
        self.changed = True             # its weights may have moved since they were assigned
        self.siblings: list = []        # weak references to models that the same node made with it
        # if the model is part of a checkpoint: (key of the loader's call, place in the result of this call, weak
        # reference to the object at this place)
        self.checkpoint: Optional[tuple] = None
        self.pushed: Optional[tuple] = None
        self.stowed = False
        self.idle = False               # its owner is declared idle until the next run begins
        self.free_now = False           # the user wants it freed by the next trigger
        self.kept = False               # the last trigger kept it, so its death must be reported

    def let_go(self) -> None:
        """Stops holding the model. If the model dies after this, it is not reported as lost."""
        self.kept = False
        self.held, self.outputs = None, {}

    def set_idle(self, idle: bool) -> None:
        """True declares that nobody uses the model from now on. False ends this declaration."""
        if idle != self.idle:
            self.owner.set_idle(idle)
            self.idle = idle

    def ids(self) -> set:
        """The ids of all objects of this model. They are valid as long as the caller holds the objects."""
        return {self.key, *(id(patcher) for patcher in self.patchers)}

    def __repr__(self) -> str:
        return f"<{self.kind} {self.owner.name} owner {self.owner.id}>"


class Registry:
    def __init__(self) -> None:
        self.identities: dict[int, Identity] = {}
        # patcher → Setting, in the order in which they were set
        self.settings: "weakref.WeakKeyDictionary" = weakref.WeakKeyDictionary()
        self.defaults = defaults()
        self.choices: Any = None        # a choices.Choices
        self.this_run: dict = {}
        self.phase = "starting"
        self.trace = lambda kind, **values: None
        self.on_gone = lambda owner, ranges: None # called with the owner and the ranges of a model that died

    # ---- models that come and go

    def find(self, model) -> Optional[Identity]:
        identity = self.identities.get(id(model))
        return identity if identity is not None and identity.model() is model else None

    def add(self, model, patcher=None, kind: str = "MODEL", origin: str = "") -> tuple[Identity, bool]:
        """The identity of an inner model, and whether it is new."""
        identity = self.find(model)
        is_new = identity is None
        if identity is None:
            name = f"{kind} {type(model).__name__}"
            owner = memstow.owner(name, "model", origin, keys=(id(model), id(patcher) if patcher is not None else 0))
            identity = Identity(owner, model, kind, origin)
            self.identities[id(model)] = identity
            weakref.finalize(model, self._gone, identity).atexit = False
        if patcher is not None:
            identity.patchers.setdefault(patcher)
        return identity, is_new

    def _gone(self, identity: Identity) -> None:
        """Handles the death of an inner model, whose id may soon belong to another model. Runs in the thread that
        dropped the last reference."""
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

    # ---- policies: set, removed, looked up

    def set(self, model, patcher, setting: Setting) -> Optional[Identity]:
        """Sets a policy on exactly this patcher, and on the inner model. The policy of the inner model is for patchers
        that were not cloned from this one. Only a changed policy is written to the trace. Returns the model's
        identity."""
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
        """Sets a policy on all models in a value that nodes pass. Returns whether the value has a model."""
        found = list(patchers_in(value))
        for patcher, model in found:
            self.set(model, patcher, setting)
        return bool(found)

    def settle(self, identity: Identity, setting: Optional[Setting]) -> None:
        """Sets the policy that the user chose, on the whole model and on each model from the same files. It replaces
        all policies that were set on these models before. If `setting` is None, it only removes these policies, and
        forgets the user's earlier choice for the files."""
        if self.choices is not None:
            self.choices.set(identity.file_key, setting)
        same = [other for other in self.all() if other.file_key is not None and other.file_key == identity.file_key]
        for one in {identity, *same}:
            for patcher in self._set_on(one):
                del self.settings[patcher]
            one.setting = setting
            self._trace_set(one, None, setting.policy if setting else "none", None)

    def loaded_from(self, identity: Identity, key: Any) -> None:
        """Notes the files of a new model. An earlier choice of the user for these files applies to the model."""
        identity.file_key = key
        if setting := self._chosen(identity):
            identity.setting = setting
            self._trace_set(identity, None, setting.policy, None)

    def _chosen(self, identity: Identity) -> Optional[Setting]:
        return self.choices.of(identity.file_key) if self.choices is not None else None

    def _trace_set(self, identity: Identity, patcher, policy: str, source: Optional[str]) -> None:
        self.trace("SET", owner=identity.owner.id, patcher=id(patcher) if patcher is not None else 0,
                   inner=identity.key, policy=policy, node=source)

    def clear(self, identity: Identity, source: str) -> None:
        """Removes the policies that the node `source` set on a model, because the node is gone or sets the policy of
        another model now."""
        for patcher in list(identity.patchers):
            if (setting := self.settings.get(patcher)) and setting.source == source:
                del self.settings[patcher]
                self._trace_set(identity, patcher, "none", source)
        if identity.setting and identity.setting.source == source:
            others = self._set_on(identity)
            identity.setting = self.settings[others[-1]] if others else self._chosen(identity)
            self._trace_set(identity, None, "none", source)
            if identity.setting is not None and identity.setting.chosen:
                self._trace_set(identity, None, identity.setting.policy, None)

    def _set_on(self, identity: Identity) -> list:
        """The patchers of a model that have a policy, in the order in which the policies were set."""
        return [patcher for patcher in list(self.settings) if patcher in identity.patchers]

    def note_flags(self, node: Optional[str] = None) -> None:
        """Writes to the trace the flags that other packs have set."""
        for identity in self.all():
            flags.note(identity, self.trace, node)

    def ruling(self, identity: Identity, patcher=None) -> Ruling:
        """The policy of a model, seen from the given patcher. The first of these that has a policy decides:
        - this run: an order to free the model now, or the options of the run
        - exactly this patcher
        - the patchers that it was cloned from, nearest first
        - the inner model
        - a flag on the patcher, on the patchers that it was cloned from, or on the inner model, in this order
        - the default of the model's type
        - the default of all types
        If none has a policy, the policy in the ruling is None."""
        flag = flags.read(patcher, identity.model())
        return dataclasses.replace(self._ruling(identity, patcher, flag), flag=flag)

    def _ruling(self, identity: Identity, patcher, flag: Optional[flags.Reading]) -> Ruling:
        if identity.free_now:
            return Ruling("free", 0, "run", "free now")
        for kind in (identity.kind, ""):
            if kind in self.this_run:
                return Ruling(self.this_run[kind], 0, "run", "extra_data of this run")
        for ancestor in flags.lineage(patcher):
            if setting := self.settings.get(ancestor):
                return Ruling(setting.policy, setting.priority, "patcher" if ancestor is patcher else "parent")
        if setting := identity.setting:
            return Ruling(setting.policy, setting.priority, "inner", CHOSEN if setting.chosen else "")
        if flag is not None:
            return Ruling(flag.policy, 0, "flag", f"{flags.FLAG} on the {flag.where}")
        for kind in (identity.kind, ""):
            if kind in self.defaults:
                return Ruling(self.defaults[kind], 0, "default", f"MEMSTOW_POLICY{'_' if kind else ''}{kind}")
        return Ruling(None, 0, "default", "nothing said")

    def found(self, identity: Identity, loaded: list) -> Any:
        """The patcher from which a trigger looks up a model's policy: the patcher in ComfyUI's list of loaded models.
        If there is none: the patcher whose policy was set last, else the youngest patcher with a flag, else the oldest
        patcher."""
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
    """The pair (patcher, inner model) of the model in a value that ComfyUI passes between nodes. The value is a
    ModelPatcher, or a CLIP, VAE, ControlNet… that has a ModelPatcher. For a bare module, or an object that has a module
    without a ModelPatcher, the pair is (None, module)."""
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
