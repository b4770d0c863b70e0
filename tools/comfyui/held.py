"""Finds the places that hold models which should have been freed but live on. A place is a Python object, or a value of
a loop. In: the identities of these models, after a run. Out: places as text for the report, and a HELD line in the
trace for each search that found places. After a complete search that found places, a model is searched again only after
64 runs. While a loop holds a model, there is no search, and the places are those in the loop. Runs on the worker
thread, between two runs."""
from collections.abc import Callable, Iterable
from typing import Any

from . import memstow
from .caches import reaching
from .registry import Identity, Registry

AGAIN = 64 # runs until a model with known places is searched again


class Sought:
    """One model, and the places that were found. `age`: the number of earlier runs after which the model should have
    been freed, but lived on. `due`: the age at which the next search comes. While complete searches find nothing, they
    come at the ages 0, 1, 2, 4, 8… `searches`: the number of searches so far."""

    def __init__(self) -> None:
        self.known = memstow.referrers().Known()
        self.loops: list[str] = [] # the places in loops
        self.age = self.due = self.searches = 0

    def words(self) -> list[str]:
        return self.loops or self.known.words()


def holders_of(identity: Identity, deadline: Any) -> tuple[list, bool]:
    """The Python objects that hold a model's two oldest patchers, or its module if there is no patcher; and whether the
    time was over before the end of the search."""
    finder = memstow.referrers()
    targets = [target for target in (list(identity.patchers) or [identity.model()])[:2] if target is not None]
    found, is_cut = finder.find(targets, (), deadline)
    return [holder for holders in found for holder in holders if holder.rank != finder.OURS], is_cut


class Held:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.sought: dict[int, Sought] = {}
        # the values that loops hold by reference, each with a text that says where the loop has it
        self.references: Callable[[], Iterable[tuple[str, Any]]] = lambda: ()

    def loops_of(self, identities: list[Identity]) -> dict[int, list[str]]:
        """The places in loops that hold each model, by owner id."""
        return reaching(self.references(), {identity.owner.id: identity.ids() for identity in identities})

    def look(self, identities: list[Identity]) -> dict[int, list[str]]:
        """The places that hold each model, by owner id. All searches after one run share one time limit. A model whose
        search has not begun when the time is up is searched after the next run."""
        self.sought = {one.owner.id: self.sought.get(one.owner.id) or Sought() for one in identities}
        for number, places in self.loops_of(identities).items():
            if places and places != self.sought[number].loops:
                self.registry.trace("HELD", owner=number, pack="memstow", place=places[0], holders=places)
            self.sought[number].loops = places
        due = [one for one in identities if not self.sought[one.owner.id].loops
               and self.sought[one.owner.id].age >= self.sought[one.owner.id].due]
        deadline = memstow.referrers().Deadline()
        # Models with the fewest searches come first, so that a model whose searches are all cut short does not take the
        # time of other models. Among models with the same number of searches, the newest comes first, because users ask
        # about new models.
        for identity in sorted(due, key=lambda one: (self.sought[one.owner.id].searches, -one.owner.id)):
            if not deadline.is_over():
                self._ask(identity, self.sought[identity.owner.id], deadline)
        for one in self.sought.values():
            one.age += 1
        return {number: one.words() for number, one in self.sought.items()}

    def _ask(self, identity: Identity, one: Sought, deadline: Any) -> None:
        one.searches += 1
        found, is_cut = holders_of(identity, deadline)
        if not one.known.take(found, is_cut):
            one.due = one.age + AGAIN
        elif found:
            one.due = one.age + (AGAIN if one.known.is_final else 1)
            self.registry.trace("HELD", owner=identity.owner.id, **memstow.referrers().held(found))
        else:
            one.due = one.age + (1 if is_cut else max(1, one.age))
