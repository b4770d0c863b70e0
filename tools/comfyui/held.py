"""Some models were to be freed, and live on: finds the objects that hold them. In: the identities of these models,
after a run. Out: places as text for the report, and a HELD line in the trace for each search that found places. After a
complete search that found places, a model is searched again only after 64 runs. Runs on the worker thread, between two
runs."""
from typing import Any

from . import memstow
from .registry import Identity, Registry

AGAIN = 64 # runs until a model with known places is searched again


class Known:
    """The places that were found for one model. `age`: for how many runs the model was to be freed; `due`: the age at
    which it is searched next. Searches without a result follow after one run, two, four… `searches`: how many there
    were."""

    def __init__(self) -> None:
        self.holders: list = []
        self.age = self.due = self.searches = 0


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
        self.known: dict[int, Known] = {}

    def look(self, identities: list[Identity]) -> dict[int, list[str]]:
        """The places, by owner id. All searches after one run together have the time of one search. Models that are not
        reached in this time are searched after the next run."""
        self.known = {identity.owner.id: self.known.get(identity.owner.id) or Known() for identity in identities}
        due = [identity for identity in identities
               if self.known[identity.owner.id].age >= self.known[identity.owner.id].due]
        deadline = memstow.referrers().Deadline()
        # the newest models first, because users ask about these; but one whose searches are all cut short must not take
        # the time of the others
        for identity in sorted(due, key=lambda one: (self.known[one.owner.id].searches, -one.owner.id)):
            if not deadline.is_over():
                self._ask(identity, self.known[identity.owner.id], deadline)
        for known in self.known.values():
            known.age += 1
        return {number: list(dict.fromkeys(holder.words for holder in known.holders)) for number,
                known in self.known.items()}

    def _ask(self, identity: Identity, known: Known, deadline: Any) -> None:
        finder = memstow.referrers()
        known.searches += 1
        found, is_cut = holders_of(identity, deadline)
        if is_cut and finder.is_final(known.holders) and not finder.is_final(found):
            known.due = known.age + AGAIN # what is known is better
            return
        known.holders = found
        if known.holders:
            known.due = known.age + (AGAIN if not is_cut or finder.is_final(known.holders) else 1)
            self.registry.trace("HELD", owner=identity.owner.id, **finder.held(known.holders))
        else:
            known.due = known.age + (1 if is_cut else max(1, known.age))
