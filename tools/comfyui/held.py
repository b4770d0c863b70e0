"""What holds models that were to be freed and live on. In: their identities, after a run. Out: places in words, for the
report, and a HELD line in the trace when they are news. What is known is not looked for again, however many models are
held and however many runs follow. Runs on the worker thread, between two runs."""
from typing import Any

from . import memstow
from .registry import Identity, Registry

AGAIN = 64 # runs until it is looked for again, once it is known


class Known:
    """What was found of one model, and when it is looked for again: what was not found after one run, two, four…"""

    def __init__(self) -> None:
        self.holders: list = []
        self.age = self.due = 0


class Held:
    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.known: dict[int, Known] = {}

    def look(self, identities: list[Identity]) -> dict[int, list[str]]:
        """By owner. All that is asked takes as long as one question may; what was not reached is asked after the next
        run."""
        self.known = {identity.owner.id: self.known.get(identity.owner.id) or Known() for identity in identities}
        due = [identity for identity in identities
               if self.known[identity.owner.id].age >= self.known[identity.owner.id].due]
        deadline = memstow.referrers().Deadline()
        # the newest is the one that is wondered about
        for identity in sorted(due, key=lambda identity: -identity.owner.id):
            if not deadline.is_over():
                self._ask(identity, self.known[identity.owner.id], deadline)
        for known in self.known.values():
            known.age += 1
        return {number: list(dict.fromkeys(holder.words for holder in known.holders)) for number,
                known in self.known.items()}

    def _ask(self, identity: Identity, known: Known, deadline: Any) -> None:
        """The Python objects that keep a model alive: a patcher if there is one, else the module."""
        finder = memstow.referrers()
        targets = [target for target in (list(identity.patchers) or [identity.model()])[:2] if target is not None]
        found, is_cut = finder.find(targets, (), deadline)
        known.holders = [holder for holders in found for holder in holders if holder.rank != finder.OURS]
        if known.holders:
            known.due = known.age + AGAIN
            self.registry.trace("HELD", owner=identity.owner.id, **finder.held(known.holders))
        else:
            known.due = known.age + (1 if is_cut else max(1, known.age))
