"""The figures of the tab "Memory" in ComfyUI's page. In: clients that have it open. Out: figures by ComfyUI's web
socket, at most once in two seconds, when they have changed, and only to these clients. While no tab is open nothing is
read."""
import asyncio
import collections
import time
from typing import Any, Callable, Optional

from . import report
from .hooks import quietly, resident
from .runs import Runs

EVENT, NODES = "memstow.figures", "memstow.nodes"
SECONDS, LEASE = 2.0, 60.0 # between two looks; a client that does not ask again for so long has gone
MOST, GRAIN = 64, 1 << 20  # clients at once; smaller changes are not shown


def fault_of(switch: str, body: Any) -> str:
    """The fault in the body of a client's request that turns something on or off; "": none."""
    if not isinstance(body, dict) or not isinstance(body.get("client"), str):
        return "client must be the id of a client of ComfyUI's web socket"
    return "" if isinstance(body.get(switch), bool) else f"{switch} must be true or false"


def machine() -> dict[str, int]:
    """Memory of the machine, from /proc/meminfo; 0 for what is not known."""
    found = {}
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            found = {name: int(value.split()[0]) * 1024 for name, _, value in (line.partition(":") for line in lines)}
    except (OSError, ValueError, IndexError):
        pass
    return {"total_bytes": found.get("MemTotal", 0), "available_bytes": found.get("MemAvailable", 0)}


def devices() -> list[dict]:
    """Memory of each CUDA device that PyTorch uses."""
    import torch
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return []
    found = []
    for number in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(number)
        found.append({"device": number, "name": torch.cuda.get_device_name(number), "total_bytes": total,
                      "free_bytes": free})
    return found


def of_run(found: Optional[dict]) -> Optional[dict]:
    """What the tab shows of the report of a run."""
    if found is None:
        return None
    return {**{key: found[key] for key in ("run", "outcome", "rss", "live", "given_bytes", "trigger_seconds")},
            "text": report.line(found), "nodes": sorted(found["nodes"], key=lambda one: -one["peak_bytes"])[:10]}


def curve_of(reports: Any) -> list[dict]:
    """The resident memory of the last runs, and what they gave back, the oldest first."""
    return [{"run": one["run"], "outcome": one["outcome"], "given_bytes": one["given_bytes"],
             **{f"{when}_bytes": one["rss"][f"{when}_bytes"] for when in ("before", "peak", "after")}}
            for one in list(reports)]


def nodes_of(found: Optional[dict]) -> list[dict]:
    """What each node of a run held at most, above what was there before it; and what of its memory stayed after the run
    and its trigger, on the host and on devices."""
    if found is None:
        return []
    stayed: collections.Counter = collections.Counter()
    for share in found["shares"]:
        if share["run_name"] == f"run {found['run']}":
            stayed[share["node_name"]] += share["after_bytes"] + share["after_cuda_bytes"]
    return [{"node": one["node"], "most_bytes": max(one["peak_bytes"] - (one["before_bytes"] or 0), 0),
             "stayed_bytes": stayed[f"{one['class']} #{one['node']}"]} for one in found["nodes"]]


def steady(read: Callable[[], Any], otherwise: Any) -> Any:
    """What it reads of the models. The worker thread may be making more of them meanwhile; then it reads again."""
    for _attempt in range(5):
        try:
            return read()
        except RuntimeError: # a set changed its size during the iteration
            continue
    return otherwise


def coarse(value: Any) -> Any:
    """The figures, rounded, so that two of them can be compared."""
    if isinstance(value, dict):
        return {key: coarse(one) for key, one in value.items()}
    if isinstance(value, list):
        return [coarse(one) for one in value]
    return value // GRAIN if isinstance(value, int) and value >= GRAIN else value


class Panel:
    def __init__(self, runs: Runs, owners: Callable[[Runs], list], send: Callable[[str, dict, str], None],
                 connected: Callable[[], Any]) -> None:
        self.runs, self.owners, self.send, self.connected = runs, owners, send, connected
        self.clients: dict[str, float] = {} # by id: until when figures are for it
        self.task: Optional[asyncio.Task] = None
        self.sent: Any = None
        self.badges: set[str] = set() # clients that show what nodes held, also while the tab is closed
        runs.on_report = self.tell_nodes

    def figures(self) -> dict:
        takes = steady(self.runs.button.would_take, {"unload": [], "free": []})
        memory = {**machine(), "resident_bytes": resident(), "glibc_free_bytes": report.held_by_glibc() or 0}
        return {"format": "memstow-comfyui-figures", "version": 1, "memory": memory, "devices": devices(),
                "models": self.owners(self.runs), "left": self.runs.leftovers.listed(), "is_busy": self.runs.is_busy(),
                "takes": takes, "last": of_run(self.last()), "runs": curve_of(self.runs.reports)}

    def open(self, client: str) -> bool:
        """A client has opened the tab, or has it open still. False: there are too many, or ComfyUI does not know it."""
        if client not in self.connected() or len(self.clients.keys() | {client}) > MOST:
            return False
        self.clients[client] = time.monotonic() + LEASE
        if self.task is None or self.task.done():
            self.task = asyncio.get_running_loop().create_task(self.look())
        return True

    def close(self, client: str) -> None:
        self.clients.pop(client, None)

    def last(self) -> Optional[dict]:
        return self.runs.reports[-1] if self.runs.reports else None

    def show_badges(self, client: str, is_on: bool) -> bool:
        """Whether the client gets what nodes held when a run has ended. False: as open()."""
        known = set(self.connected())
        self.badges = (self.badges & known) - {client}
        if is_on and (client not in known or len(self.badges) >= MOST):
            return False
        self.badges |= {client} if is_on else set()
        return True

    def tell_nodes(self, found: dict) -> None:
        """A run has its report. Runs on the worker thread."""
        for client in list(self.badges):
            self.send(NODES, {"run": found["run"], "nodes": nodes_of(found)}, client)

    async def look(self) -> None:
        """Sends figures until no client is left."""
        while True:
            await asyncio.sleep(SECONDS)
            known, now = self.connected(), time.monotonic()
            self.clients = {client: until for client, until in self.clients.items() if client in known and until > now}
            if not self.clients:
                return
            quietly(self.tell)()

    def tell(self) -> None:
        figures = self.figures()
        rounded = coarse(figures)
        if rounded != self.sent:
            self.sent = rounded
            for client in self.clients:
                self.send(EVENT, figures, client)
