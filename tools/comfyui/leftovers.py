"""Finds memory that dead models left behind, and the objects that hold it. A model is dead when its module is gone,
but something may have kept its weights. After a run, all Python objects are searched for tensors in that memory.
The holders are written to the trace, where memstow leaks reads them. Runs on the worker thread, between two runs."""
import collections
import gc
import sys
from typing import Any

from . import memstow, report
from .hooks import quietly

referrers = memstow.referrers()
LITTLE, SHARE = 64 * 1024, 20    # as in memstow leaks: less memory is a small remainder
MOST, TENSORS, AGAIN = 64, 3, 64 # remembered models, tensors that are asked about, runs until a holder is written again


class Leftover:
    def __init__(self, owner: Any, ranges: frozenset) -> None:
        self.owner, self.ranges, self.age = owner, ranges, 0
        self.due = False # it is time to ask for its holder
        self.holders: list[str] = [] # the places that hold it, where they are known

    def size(self) -> int:
        """Its live bytes; 0 if they are so few that they are no leftover."""
        figures = report.figures_of(self.owner)
        return figures.live_bytes if figures.live_bytes >= max(LITTLE, figures.allocated_bytes // SHARE) else 0


class Leftovers:
    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.list: collections.deque = collections.deque(maxlen=MOST)

    def add(self, owner: Any, ranges: frozenset) -> None:
        """The owner's model died. This may be called anywhere, at any time."""
        if ranges:
            self.list.append(Leftover(owner, ranges))

    def listed(self) -> list[dict]:
        """What dead models left behind, and what holds it. A model that died after the last run is not there yet."""
        sizes = [(leftover, leftover.size()) for leftover in list(self.list) if leftover.age]
        return [{"owner": leftover.owner.id, "name": leftover.owner.name, "origin": leftover.owner.origin,
                 "live_bytes": size, "holders": leftover.holders} for leftover, size in sizes if size]

    @quietly
    def look(self) -> None:
        """Looks after a run. All searches together may take as long as one; the rest is searched after the next run."""
        due = [leftover for leftover in list(self.list) if self._age(leftover)]
        asked = tensors_in(due)
        for leftover in due:
            leftover.due = False
        deadline = referrers.Deadline()
        for leftover, tensors in asked:
            leftover.due = deadline.is_over()
            if not leftover.due:
                self._ask(leftover, tensors, deadline)

    def _age(self, leftover: Leftover) -> bool:
        """Counts a run since the model died. Returns whether to ask about the leftover now."""
        leftover.age += 1
        leftover.due |= leftover.age <= 2 or leftover.age % AGAIN == 0
        if not leftover.due:
            return False
        if leftover.size():
            return True
        self.list.remove(leftover)
        return False

    def _ask(self, leftover: Leftover, tensors: list, deadline: Any) -> None:
        found = referrers.together(referrers.find(tensors, {id(sys._getframe())}, deadline, all_of_them=True)[0])
        leftover.holders = list(dict.fromkeys(holder.words for holder in found))
        if found:
            self.trace("HELD", owner=leftover.owner.id, **referrers.held(found))


def tensors_in(leftovers: list) -> list:
    """(leftover, some of the tensors in it) for each, from one pass over all objects."""
    if not leftovers:
        return []
    import torch
    found: list = [(leftover, []) for leftover in leftovers]
    by_range = {one: tensors for leftover, tensors in found for one in leftover.ranges}
    kinds: dict = {}
    for thing in gc.get_objects():
        kind = type(thing)
        if kind not in kinds:
            kinds[kind] = issubclass(kind, torch.Tensor)
        if kinds[kind]:
            for one in memstow.ranges(thing):
                tensors = by_range.get(one)
                if tensors is not None and len(tensors) < TENSORS:
                    tensors.append(thing)
    return [(leftover, tensors) for leftover, tensors in found if tensors]
