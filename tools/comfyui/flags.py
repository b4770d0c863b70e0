"""Reads flags that other packs set on models without telling this pack. In: live patchers and inner models. Out: the
flag of a model, seen from one of its patchers, and SET lines for the trace. Never sets a flag. Never decides whether a
flag or a policy counts: registry.py decides that."""
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional

# ComfyUI-MultiGPU's flag: version 2.5.0 sets it on patchers and inner models, later versions on inner models only
FLAG = "_mgpu_unload_distorch_model"


def policy_of(value: Any) -> str:
    return "free" if value else "keep"


def value_on(holder: Any) -> Optional[bool]:
    """The flag on exactly this object; None if it is not set."""
    value = getattr(holder, "__dict__", {}).get(FLAG)
    return None if value is None else bool(value)


def lineage(patcher: Any) -> Iterator[Any]:
    """The patcher, and the patchers that it was cloned from, nearest first. ComfyUI clones a patcher, for example, to
    apply a LoRA."""
    seen: set = set()
    while patcher is not None and id(patcher) not in seen:
        seen.add(id(patcher))
        yield patcher
        patcher = getattr(patcher, "parent", None)


@dataclass(frozen=True)
class Reading:
    """A flag, seen from one patcher. `on_patcher`: the flag's value on the patcher, or else on the nearest patcher that
    it was cloned from and that has the flag. `on_inner`: the flag's value on the inner model. `source`: the id of the
    object whose value counts. `where`: a text that says which object this is."""
    on_patcher: Optional[bool]
    on_inner: Optional[bool]
    source: int
    where: str

    @property
    def policy(self) -> str:
        return policy_of(self.on_inner if self.on_patcher is None else self.on_patcher)

    def members(self) -> dict:
        """Members for a READ line."""
        return {"flag": FLAG, "on_patcher": self.on_patcher, "on_inner": self.on_inner, "from": self.source}


def read(patcher: Any, model: Any) -> Optional[Reading]:
    """Reads the flag. The first of these that has the flag decides: the patcher; the patchers that it was cloned from;
    the inner model, which all clones share. Returns None if none of them has the flag."""
    on_inner = value_on(model)
    for holder in lineage(patcher):
        if (value := value_on(holder)) is not None:
            where = "patcher" if holder is patcher else "patcher that it was cloned from"
            return Reading(value, on_inner, id(holder), where)
    return Reading(None, on_inner, id(model), "inner model") if on_inner is not None else None


def note(identity: Any, trace: Callable, node: Optional[str] = None) -> None:
    """Writes to the trace which flags of this model are new, changed or gone. `node`: the id of the node that ran."""
    holders = [identity.model(), *(holder for patcher in list(identity.patchers) for holder in lineage(patcher))]
    now = {id(holder): value for holder in holders if (value := value_on(holder)) is not None}
    for number in {**identity.flags, **now}:
        value = now.get(number)
        if value != identity.flags.get(number):
            trace("SET", owner=identity.owner.id, patcher=0 if number == identity.key else number, inner=identity.key,
                  policy="none" if value is None else policy_of(value), flag=FLAG, value=value, node=node)
    identity.flags = now
