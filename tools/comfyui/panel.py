"""The figures of the tab "Memory" in ComfyUI's page. In: clients (open pages of ComfyUI) that have the tab open. Out:
figures by ComfyUI's web socket, only to these clients, at most once in two seconds, and only if the figures have
changed (see coarse()). While no tab is open, nothing is read."""
import asyncio
import collections
import time
from typing import Any, Callable, Optional

from . import report
from .hooks import quietly, resident
from .runs import Runs

EVENT, NODES = "memstow.figures", "memstow.nodes"
SECONDS, LEASE = 2.0, 60.0 # seconds: between two readings; until a client counts as gone, if it does not ask again
MOST, GRAIN = 64, 1 << 20  # MOST: the most clients at one time. GRAIN: sizes are compared in units of so many bytes
ROWS = 10                  # models and nodes of the last run: the largest
NO_CLIENT = "client must be the id of a client of ComfyUI's web socket"


def fault_of(switch: str, body: Any) -> str:
    """The fault in the body of a client's request to turn something on or off, or "" if there is no fault."""
    if not isinstance(body, dict) or not isinstance(body.get("client"), str):
        return NO_CLIENT
    return "" if isinstance(body.get(switch), bool) else f"{switch} must be true or false"


def bytes_in(path: str, *names: str) -> list[int]:
    """Figures of a file such as /proc/meminfo, whose lines are "Name:   4711 kB", in bytes. A figure that is not known
    is 0."""
    found = {}
    try:
        with open(path, encoding="ascii", errors="replace") as lines:
            found = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    except OSError:
        pass
    return [int(found[name][0]) * 1024 if name in found else 0 for name in names]


def memory_now() -> dict[str, int]:
    """Memory of the machine and of this process. file_bytes: the resident part of files that the process has mapped, as
    the kernel counts it."""
    total, available = bytes_in("/proc/meminfo", "MemTotal", "MemAvailable")
    [of_files] = bytes_in("/proc/self/status", "RssFile")
    return {"total_bytes": total, "available_bytes": available, "resident_bytes": resident(), "file_bytes": of_files,
            "glibc_free_bytes": report.held_by_glibc() or 0}


def devices() -> list[dict]:
    """Memory of each CUDA device that PyTorch sees; [] until PyTorch has begun CUDA. kept_bytes: memory that PyTorch's
    allocator has taken from the device, but that is not in use."""
    import torch
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return []
    found = []
    for number in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(number)
        kept = torch.cuda.memory_reserved(number) - torch.cuda.memory_allocated(number)
        found.append({"device": number, "name": torch.cuda.get_device_name(number), "total_bytes": total,
                      "free_bytes": free, "kept_bytes": max(kept, 0)})
    return found


def models_of(found: dict) -> list[dict]:
    """The memory of the largest models of a run: before it, at its peak, and after it, on the host and on devices."""
    rows = [{**{key: owner[key] for key in ("name", "origin")},
             **{f"{when}_{place}bytes": owner[f"{word}_{place}bytes"] for place in ("", "cuda_")
                for when, word in (("before", "run_before"), ("peak", "run_peak"), ("after", "after"))}}
            for owner in found["owners"] + found["freed"]]
    return sorted(rows, key=lambda row: -(row["peak_bytes"] or 0) - (row["peak_cuda_bytes"] or 0))[:ROWS]


def of_run(found: Optional[dict]) -> Optional[dict]:
    """The part of a run's report that the tab shows, or None if no run has ended."""
    if found is None:
        return None
    return {**{key: found[key] for key in ("run", "outcome", "rss", "live", "given_bytes", "trigger_seconds")},
            "text": report.line(found), "models": models_of(found),
            "nodes": sorted(found["nodes"], key=lambda one: -one["peak_bytes"])[:ROWS]}


def curve_of(reports: Any) -> list[dict]:
    """The resident memory of the last runs, and the bytes that their triggers gave back, the oldest run first."""
    return [{"run": one["run"], "outcome": one["outcome"], "given_bytes": one["given_bytes"],
             **{f"{when}_bytes": one["rss"][f"{when}_bytes"] for when in ("before", "peak", "after")}}
            for one in list(reports)]


def nodes_of(found: Optional[dict]) -> list[dict]:
    """The memory of each node of a run. `most_bytes`: the peak while the node ran, minus the live bytes before the node
    ran. `stayed_bytes`: the node's memory on the host and on devices that is still live after the run and its
    trigger."""
    if found is None:
        return []
    stayed: collections.Counter = collections.Counter()
    for share in found["shares"]:
        if share["run_name"] == f"run {found['run']}":
            stayed[share["node_name"]] += share["after_bytes"] + share["after_cuda_bytes"]
    return [{"node": one["node"], "most_bytes": max(one["peak_bytes"] - (one["before_bytes"] or 0), 0),
             "stayed_bytes": stayed[f"{one['class']} #{one['node']}"]} for one in found["nodes"]]


def steady(read: Callable[[], Any], otherwise: Any) -> Any:
    """The result of `read`, which goes through the models. If the worker thread adds a model meanwhile, `read` is
    called again. After five calls without a result, the result is `otherwise`."""
    for _attempt in range(5):
        try:
            return read()
        except RuntimeError: # a set changed its size during the iteration
            continue
    return otherwise


def coarse(value: Any) -> Any:
    """The figures in a coarse form. A number of GRAIN or more is given in units of GRAIN, so large sizes that differ by
    less than GRAIN are mostly equal. Smaller numbers stay exact."""
    if isinstance(value, dict):
        return {key: coarse(one) for key, one in value.items()}
    if isinstance(value, list):
        return [coarse(one) for one in value]
    return value // GRAIN if isinstance(value, int) and value >= GRAIN else value


class Panel:
    def __init__(self, runs: Runs, owners: Callable[[Runs], list], send: Callable[[str, dict, str], None],
                 connected: Callable[[], Any]) -> None:
        self.runs, self.owners, self.send, self.connected = runs, owners, send, connected
        self.clients: dict[str, float] = {} # client's id → time until which it gets figures
        self.task: Optional[asyncio.Task] = None
        self.sent: Any = None
        self.badges: set[str] = set() # clients that show badges with the memory of nodes, also while the tab is closed
        runs.on_report = self.tell_nodes

    def figures(self) -> dict:
        takes = steady(self.runs.button.would_take, {"unload": [], "free": []})
        return {"format": "memstow-comfyui-figures", "version": 1, "memory": memory_now(), "devices": devices(),
                "models": self.owners(self.runs), "left": self.runs.leftovers.listed(), "is_busy": self.runs.is_busy(),
                "takes": takes, "last": of_run(self.last()), "runs": curve_of(self.runs.reports)}

    def open(self, client: str) -> bool:
        """Notes that a client has the tab open. Returns false if there are too many clients, or if ComfyUI does not
        know this client."""
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
        """Sets whether the client gets the memory of nodes after each run. Returns false if this is refused, for the
        reasons in open()."""
        known = set(self.connected())
        self.badges = (self.badges & known) - {client}
        if is_on and (client not in known or len(self.badges) >= MOST):
            return False
        self.badges |= {client} if is_on else set()
        return True

    def tell_nodes(self, found: dict) -> None:
        """Sends the memory of nodes to the clients when a run has its report. Runs on the worker thread."""
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
