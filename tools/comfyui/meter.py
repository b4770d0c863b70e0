"""How much was live before a run, at most, and after it: of the whole process, of each model, and of each model in each node
and run. In: the moments at which nodes begin and end; out: parts of the run report. Where the library is older than its
functions for that, there is nothing."""
import collections
import time
from typing import Any, Optional

from . import log, memstow

LITTLE = 64 * 1024  # shares that never had more are left out
ONE_IN = 20         # of the time goes into looking at shares, at most

Key = tuple[int, int, int]  # model, node, run: ids of owners, 0 for none


class Meter:
    def __init__(self) -> None:
        self.names: dict[int, str] = {}     # of owners that may have a share
        self.open: list = []                # nodes that run now
        self.before: dict[Key, int] = {}
        self.most: dict[Key, int] = {}
        self.before_of: dict[int, int] = {} # the same by model
        self.most_of: dict[int, int] = {}
        self.live_before: Optional[int] = None
        self.peak = 0
        self.look_again = 0.0
        self.knows_shares = True

    # ---- moments

    def begin(self) -> None:
        """A run, or a trigger since, is about to begin."""
        self.open = []
        self.before, self.most, self.most_of = {}, {}, {}
        self.before = self.look()
        self.before_of = by_model(self.before)
        peak_of_a_while(anew=True)
        self.peak, self.live_before = 0, self.turn()

    def turn(self) -> Optional[int]:
        """A node begins or ends. What was live at most since the last turn counts for the run, and for each node that ran.
        Returns what is live now."""
        peak, now = peak_of_a_while(anew=True), peak_of_a_while()
        self.peak = max(self.peak, peak or 0)
        for node in self.open:
            node.peak = max(node.peak, peak or 0)
        return now

    def enter(self, node: Any) -> None:
        node.live_before = self.turn()
        node.peak = node.live_before or 0
        self.open.append(node)

    def leave(self, node: Any) -> Optional[int]:
        """Returns what is live now."""
        now = self.turn()
        if node in self.open:
            self.open.remove(node)
        if time.monotonic() >= self.look_again:
            self.look()
        return now

    def look(self) -> dict[Key, int]:
        """What is live of each model in each node and run, now, which may be the most so far."""
        begun = time.monotonic()
        now = self._shares()
        for most, there in ((self.most, now), (self.most_of, by_model(now))):
            for key, size in there.items():
                most[key] = max(size, most.get(key, 0))
        ended = time.monotonic()
        self.look_again = ended + ONE_IN * (ended - begun)
        return now

    # ---- the report

    def of_model(self, owner: int) -> dict:
        before, most = (table.get(owner, 0) if self.knows_shares else None for table in (self.before_of, self.most_of))
        return {"run_before_bytes": before, "run_peak_bytes": most}

    def live(self) -> Optional[dict]:
        """Of the whole process."""
        now = self.turn()
        if now is None or self.live_before is None:
            return None
        return {"before_bytes": self.live_before, "peak_bytes": self.peak, "after_bytes": now}

    def shares(self) -> list[dict]:
        """Model by node by run, those that had most first."""
        now = self.look()
        found = [{**self._named(key), "before_bytes": self.before.get(key, 0), "peak_bytes": most, "after_bytes": now.get(key, 0)}
                 for key, most in sorted(self.most.items(), key=lambda item: -item[1]) if most >= LITTLE]
        alive = {owner for key in now for owner in key}
        self.names = {owner: name for owner, name in self.names.items() if owner in alive}
        return found

    def _named(self, key: Key) -> dict:
        found: dict = {}
        for kind, owner in zip(("model", "node", "run"), key):
            found[kind] = owner or None
            found[f"{kind}_name"] = self.names.get(owner, f"owner {owner}") if owner else None
        return found

    def _shares(self) -> dict[Key, int]:
        found: collections.Counter = collections.Counter()
        try:
            for share in memstow.shares():
                found[share.model, share.node, share.run] += share.live_bytes
        except memstow.Error as error:
            self.knows_shares = False
            log.debug("no shares: %s", error)
        return dict(found)


def peak_of_a_while(anew: bool = False) -> Optional[int]:
    try:
        return memstow.peak(anew)
    except memstow.Error as error:
        log.debug("no peaks: %s", error)
        return None


def by_model(shares: dict[Key, int]) -> dict[int, int]:
    found: collections.Counter = collections.Counter()
    for (model, _node, _run), size in shares.items():
        found[model] += size
    return dict(found)
