"""Measures live memory before a run, at its peak and after it: of the whole process, of each model, and of each model
in each node and run (a share). Memory of models on CUDA devices is measured, too. In: the moments when nodes begin and
end. Out: parts of the run report. With an older library, which lacks the functions for this, it measures nothing."""
import collections
import time
from typing import Any, Optional

from . import log, memstow

LITTLE = 64 * 1024  # bytes: shares that always stay below this are left out
ONE_IN = 20         # readings of shares may take 1/20 of the time

Key = tuple[int, int, int]  # model, node, run: ids of owners, 0 for none


class Place:
    """The memory of models on the host, or on devices, in bytes: before a run, and the highest since the run began."""

    def __init__(self) -> None:
        # by share
        self.before: dict[Key, int] = {}
        self.most: dict[Key, int] = {}
        # by model
        self.before_of: dict[int, int] = {}
        self.most_of: dict[int, int] = {}

    def begin(self, now: dict[Key, int]) -> None:
        self.before, self.before_of = now, by_model(now)

    def look(self, now: dict[Key, int]) -> None:
        for key, size in now.items():
            self.most[key] = max(size, self.most.get(key, 0))
        for model, size in by_model(now).items():
            self.most_of[model] = max(size, self.most_of.get(model, 0))


class Meter:
    def __init__(self) -> None:
        self.names: dict[int, str] = {}     # names of the owners that may have a share
        # owner's id → the model's file or the class of its loader. This origin tells models of the same name apart
        self.origins: dict[int, str] = {}
        self.open: list = []                # nodes that are running
        self.host, self.device = Place(), Place()
        self.live_before: Optional[int] = None
        self.peak = 0
        self.look_again = 0.0
        self.knows_shares = True

    # ---- when a run, a node or a look begins or ends

    def begin(self) -> None:
        """Begins a measurement. Call it just before a run, and before a trigger outside of runs."""
        self.open = []
        self.host, self.device = Place(), Place()
        for place, now in zip((self.host, self.device), self.look()):
            place.begin(now)
        peak_of_a_while(anew=True)
        self.peak, self.live_before = 0, self.turn()

    def turn(self) -> Optional[int]:
        """Call it when a node begins or ends. The peak since the last call counts for the run and for each running
        node. Returns the present live bytes, or None if the library cannot tell them."""
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
        """Call it when a node ends. Returns the present live bytes, as turn() does."""
        now = self.turn()
        if node in self.open:
            self.open.remove(node)
        if time.monotonic() >= self.look_again:
            self.look()
        return now

    def look(self) -> tuple[dict[Key, int], dict[Key, int]]:
        """Reads the shares on the host and on devices, and raises the peaks that they exceed. Returns the shares."""
        begun = time.monotonic()
        host, device = self._shares()
        self.host.look(host)
        self.device.look(device)
        ended = time.monotonic()
        self.look_again = ended + ONE_IN * (ended - begun)
        return host, device

    # ---- figures for the report

    def of_model(self, owner: int) -> dict:
        found: dict = {}
        for place, word in ((self.host, ""), (self.device, "cuda_")):
            for table, when in ((place.before_of, "before"), (place.most_of, "peak")):
                found[f"run_{when}_{word}bytes"] = table.get(owner, 0) if self.knows_shares else None
        return found

    def live(self) -> Optional[dict]:
        """The live bytes of the whole process: before the run, at its peak, and now. None if they are not known."""
        now = self.turn()
        if now is None or self.live_before is None:
            return None
        return {"before_bytes": self.live_before, "peak_bytes": self.peak, "after_bytes": now}

    def shares(self) -> list[dict]:
        """The live bytes of each model in each node and run, on the host and on devices: before the run, at their peak,
        and now. The largest peaks come first. Shares that never reached LITTLE are left out."""
        nows = self.look()
        most = collections.Counter(self.host.most)
        most.update(self.device.most)
        found = []
        for key, _ in sorted(most.items(), key=lambda item: -item[1]):
            if max(self.host.most.get(key, 0), self.device.most.get(key, 0)) < LITTLE:
                continue
            line = self._named(key)
            for place, now, word in ((self.host, nows[0], ""), (self.device, nows[1], "cuda_")):
                line.update({
                    f"before_{word}bytes": place.before.get(key, 0), f"peak_{word}bytes": place.most.get(key, 0),
                    f"after_{word}bytes": now.get(key, 0)
                })
            found.append(line)
        alive = {owner for now in nows for key in now for owner in key}
        self.names = {owner: name for owner, name in self.names.items() if owner in alive}
        self.origins = {owner: origin for owner, origin in self.origins.items() if owner in alive}
        return found

    def _named(self, key: Key) -> dict:
        found: dict = {}
        for kind, owner in zip(("model", "node", "run"), key):
            found[kind] = owner or None
            found[f"{kind}_name"] = self.names.get(owner, f"owner {owner}") if owner else None
        return {**found, "model_origin": self.origins.get(key[0])}

    def _shares(self) -> tuple[dict[Key, int], dict[Key, int]]:
        host: collections.Counter = collections.Counter()
        device: collections.Counter = collections.Counter()
        try:
            for share in memstow.shares():
                host[share.model, share.node, share.run] += share.live_bytes
                if share.cuda_bytes:
                    device[share.model, share.node, share.run] += share.cuda_bytes
        except memstow.Error as error:
            self.knows_shares = False
            log.debug("no shares: %s", error)
        return dict(host), dict(device)


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
