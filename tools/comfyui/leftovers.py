"""Finds memory that dead models left behind, and the objects that hold it. A model is dead when its module is gone;
something may still hold its weights. After a run, all Python objects are searched for tensors in that memory. The
holders of these tensors are written to the trace, where memstow leaks reads them. Runs on the worker thread, between
two runs."""
import collections
import gc
import sys
from typing import Any

from . import memstow, report
from .hooks import quietly

referrers = memstow.referrers()
# A dead model does not count as left behind if its live bytes are fewer than LITTLE, or fewer than 1/SHARE of all bytes
# that were allocated for it. The command memstow leaks has the same rule.
LITTLE, SHARE = 64 * 1024, 20
# MOST: how many dead models are remembered (the latest). TENSORS: a search takes so many tensors of a model, and finds
# their holders. SOON: a search comes after each of the first SOON runs since the model died. AGAIN: later it comes
# every AGAIN runs.
MOST, TENSORS, SOON, AGAIN = 64, 3, 2, 64


class Leftover:
    def __init__(self, owner: Any, ranges: frozenset) -> None:
        self.owner, self.ranges, self.age = owner, ranges, 0 # age: runs that have ended since the model died
        self.due = False # whether to search for its holders after the next run
        self.known = referrers.Known() # the places that hold the memory

    def size(self) -> int:
        """The live bytes of the dead model. 0 if they are too few to count as left behind."""
        figures = report.figures_of(self.owner)
        return figures.live_bytes if figures.live_bytes >= max(LITTLE, figures.allocated_bytes // SHARE) else 0


class Leftovers:
    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.list: collections.deque = collections.deque(maxlen=MOST)

    def add(self, owner: Any, ranges: frozenset) -> None:
        """Notes that the owner's model died. This may be called on any thread, at any time."""
        if ranges:
            self.list.append(Leftover(owner, ranges))

    def listed(self) -> list[dict]:
        """The dead models that left memory behind, and the places that hold it. A model that died after the last run is
        not listed yet."""
        sizes = [(leftover, leftover.size()) for leftover in list(self.list) if leftover.age]
        return [{"owner": leftover.owner.id, "name": leftover.owner.name, "origin": leftover.owner.origin,
                 "live_bytes": size, "holders": leftover.known.words()} for leftover, size in sizes if size]

    @quietly
    def look(self) -> None:
        """Searches for holders after a run. All searches together have the time of one search. Models that are not
        reached in this time are searched after the next run."""
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
        """Counts one more run since the model died. Returns whether to search for its holders now."""
        leftover.age += 1
        leftover.due |= leftover.age <= SOON or leftover.age % AGAIN == 0
        if not leftover.due:
            return False
        if leftover.size():
            return True
        self.list.remove(leftover)
        return False

    def _ask(self, leftover: Leftover, tensors: list, deadline: Any) -> None:
        holders, is_cut = referrers.find(tensors, {id(sys._getframe())}, deadline, all_of_them=True)
        found = referrers.together(holders)
        # A final result (Known.is_final) is written at once. A result that is not final may be only an object without a
        # name, and the next search may find a better one. So such a result is written only when the model has been dead
        # for SOON runs. It is never written after a final result that has holders: take() returns False then.
        if leftover.known.take(found, is_cut) and found and (leftover.known.is_final or leftover.age >= SOON):
            self.trace("HELD", owner=leftover.owner.id, **referrers.held(found))


def tensors_in(leftovers: list) -> list:
    """Pairs of a leftover and at most TENSORS tensors in its memory, from one pass over all objects. A leftover without
    tensors is not in the result."""
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
