"""What models that died left behind, and who holds it. A model dies when its module does; its weights may live on in
what somebody kept of them. At the end of a run their tensors are looked for among all Python objects, by address, and
who holds them is said in the trace, where memstow leaks finds it. Runs on the worker thread, between two runs."""
import collections
import gc
import sys
from typing import Any

from . import memstow, report
from .hooks import quietly

referrers = memstow.referrers()
LITTLE, SHARE = 64 * 1024, 20    # as memstow leaks has it: less is a remainder
MOST, TENSORS, AGAIN = 64, 3, 64 # models that are remembered, tensors that are asked about, runs until it is said again


class Leftover:
    def __init__(self, owner: Any, ranges: frozenset) -> None:
        self.owner, self.ranges, self.age = owner, ranges, 0
        self.due = False # who holds it is to be asked


class Leftovers:
    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.list: collections.deque = collections.deque(maxlen=MOST)

    def add(self, owner: Any, ranges: frozenset) -> None:
        """The owner's model died. Anywhere, at any time."""
        if ranges:
            self.list.append(Leftover(owner, ranges))

    @quietly
    def look(self) -> None:
        """After a run. All that is asked takes as long as one question may; what was not reached is asked after the
        next run."""
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
        """It is a run older; whether it is to be asked about."""
        leftover.age += 1
        leftover.due |= leftover.age <= 2 or leftover.age % AGAIN == 0
        if not leftover.due:
            return False
        figures = report.figures_of(leftover.owner)
        if figures.live_bytes >= max(LITTLE, figures.allocated_bytes // SHARE):
            return True
        self.list.remove(leftover)
        return False

    def _ask(self, leftover: Leftover, tensors: list, deadline: Any) -> None:
        found = referrers.together(referrers.find(tensors, {id(sys._getframe())}, deadline, all_of_them=True)[0])
        if found:
            self.trace("HELD", owner=leftover.owner.id, **referrers.held(found))


def tensors_in(leftovers: list) -> list:
    """(leftover, tensors that lie in it): a few of each, in one pass over all objects."""
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
