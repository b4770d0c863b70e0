"""What models that died left behind, and who holds it. A model dies when its module does; its weights may live on in what
somebody kept of them. At the end of a run their tensors are looked for among all Python objects, by address, and who holds
them is said in the trace, where memstow leaks finds it. Runs on the worker thread, between two runs."""
import collections
import gc
import sys
from typing import Any

from . import memstow, report
from .hooks import quietly
from .referrers import holders

LITTLE, SHARE = 64 * 1024, 20    # as memstow leaks has it: less is a remainder
MOST, TENSORS, AGAIN = 64, 3, 64 # models that are remembered, tensors that are asked about, runs until it is said again


class Leftover:
    def __init__(self, owner: Any, ranges: frozenset) -> None:
        self.owner, self.ranges, self.age = owner, ranges, 0


class Leftovers:
    def __init__(self, trace: Any) -> None:
        self.trace = trace
        self.list: collections.deque = collections.deque(maxlen=MOST)

    def add(self, owner: Any, ranges: frozenset) -> None:
        """The owner's model died. Anywhere, at any time."""
        self.list.append(Leftover(owner, ranges))

    @quietly
    def look(self) -> None:
        """After a run."""
        due = []
        for leftover in list(self.list):
            leftover.age += 1
            if leftover.age > 2 and leftover.age % AGAIN:
                continue
            figures = report.figures_of(leftover.owner)
            if figures.live_bytes < max(LITTLE, figures.allocated_bytes // SHARE):
                self.list.remove(leftover)
            elif leftover.ranges:
                due.append(leftover)
        for leftover, tensors in tensors_in(due):
            found: list = []
            for tensor in tensors:
                found += holders(tensor, {id(tensors), id(found), id(sys._getframe())})
            if found:
                self.trace("HELD", owner=leftover.owner.id, holders=[h[:300] for h in dict.fromkeys(found)][:8])


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
