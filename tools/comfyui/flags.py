"""Flags that other packs set on a model, without telling anybody. In: patchers and inner models that are alive; out:
what a flag says of a model, seen from one of its patchers, and SET lines for the trace. Never sets a flag, and never
decides between a flag and a policy: the registry does."""
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional

FLAG = "_mgpu_unload_distorch_model" # ComfyUI-MultiGPU's: on patchers and inner models in 2.5.0, later on inner models


def policy_of(value: Any) -> str:
    return "free" if value else "keep"


def value_on(holder: Any) -> Optional[bool]:
    """What the flag is on this very object; None where it is not set."""
    value = getattr(holder, "__dict__", {}).get(FLAG)
    return None if value is None else bool(value)


def lineage(patcher: Any) -> Iterator[Any]:
    """The patcher, and those that it was cloned from, nearest first: a LoRA is on a clone."""
    seen: set = set()
    while patcher is not None and id(patcher) not in seen:
        seen.add(id(patcher))
        yield patcher
        patcher = getattr(patcher, "parent", None)


@dataclass(frozen=True)
class Reading:
    """A flag, seen from one patcher: its value there, or on the nearest patcher that it was cloned from; its value on
    the inner model; and the object whose value counts."""
    on_patcher: Optional[bool]
    on_inner: Optional[bool]
    source: int
    where: str

    @property
    def policy(self) -> str:
        return policy_of(self.on_inner if self.on_patcher is None else self.on_patcher)

    def members(self) -> dict:
        """For a READ."""
        return {"flag": FLAG, "on_patcher": self.on_patcher, "on_inner": self.on_inner, "from": self.source}


def read(patcher: Any, model: Any) -> Optional[Reading]:
    """The patcher before what it was cloned from, and both before the inner model, which all clones share. None: no
    flag."""
    on_inner = value_on(model)
    for holder in lineage(patcher):
        if (value := value_on(holder)) is not None:
            where = "patcher" if holder is patcher else "patcher that it was cloned from"
            return Reading(value, on_inner, id(holder), where)
    return Reading(None, on_inner, id(model), "inner model") if on_inner is not None else None


def note(identity: Any, trace: Callable, node: Optional[str] = None) -> None:
    """Says in the trace which flags of this model are new since the last time, changed, or gone; `node` is the one that
    ran."""
    holders = [identity.model(), *(holder for patcher in list(identity.patchers) for holder in lineage(patcher))]
    now = {id(holder): value for holder in holders if (value := value_on(holder)) is not None}
    for number in {**identity.flags, **now}:
        value = now.get(number)
        if value != identity.flags.get(number):
            trace("SET", owner=identity.owner.id, patcher=0 if number == identity.key else number, inner=identity.key,
                  policy="none" if value is None else policy_of(value), flag=FLAG, value=value, node=node)
    identity.flags = now
