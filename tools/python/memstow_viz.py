#!/usr/bin/env python3
"""memstow_viz: device memory as a snapshot for PyTorch's memory viewer (pytorch.org/memory_viz,
torch.cuda._memory_viz).

    python3 -m memstow_viz FILE|PID OUT.pickle

PyTorch's own snapshots show neither what cudaMallocAsync allocates nor the memory of other libraries. The ledger has
both. Each block of device memory in the ledger becomes a segment in the viewer. If parts of the block have different
owners, each part becomes a block of that segment. The outermost frames of a stack are the owners. This program needs
the memstow command (in MEMSTOW, or on the PATH), but not PyTorch."""
import json, os, pickle, subprocess, sys
from typing import Any, Optional

Item = dict[str, Any] # an object of the report, or of PyTorch's snapshot
VIEWED = {"device", "pool", "managed", "vmm"}


def label(name: str, origin: Optional[str]) -> str:
    """A model's name as people read it. If the model has an origin, it is added, because several models may have the
    same name."""
    return f"{name} ({origin})" if origin else name


def owner_frames(item: Item) -> list[Item]:
    """The owners of an item as frames; the outermost is the model."""
    model = item["model"] and label(item["model"], item.get("model_origin"))
    named = (("run", item["run"]), ("node", item["node"]), ("model", model))
    return [{"name": f"{kind}: {name}", "filename": "", "line": 0} for kind, name in named if name]


def frames(site: Optional[Item], item: Item) -> list[Item]:
    """The call stack, innermost first, and then the owners of the item."""
    stack = site["stack"] if site else []
    return [{"name": frame["function"] or "??", "filename": frame["file"] or frame["module"] or "",
             "line": frame["line"] or 0} for frame in stack] + owner_frames(item)


def block(address: int, size: int, item: Item, sites: dict[int, Item]) -> Item:
    return {"address": address, "size": size, "requested_size": size, "state": "active_allocated",
            "frames": frames(sites.get(item["site"]), item)}


def split(whole: Item, parts: list[Item], sites: dict[int, Item]) -> list[Item]:
    """The blocks of a segment: its parts, and the gaps between the parts. A gap belongs to the owners of the whole
    segment."""
    blocks, at = [], whole["address"]
    for part in sorted(parts, key=lambda p: p["address"]):
        if part["address"] > at:
            blocks.append(block(at, part["address"] - at, whole, sites))
        blocks.append(block(part["address"], part["size_bytes"], part, sites))
        at = part["address"] + part["size_bytes"]
    end = whole["address"] + whole["size_bytes"]
    return blocks + ([block(at, end - at, whole, sites)] if end > at else [])


def segment(whole: Item, parts: list[Item], sites: dict[int, Item]) -> Item:
    size = whole["size_bytes"]
    return {"device": whole["device"], "address": whole["address"], "total_size": size, "allocated_size": size,
            "active_size": size, "requested_size": size, "stream": whole["stream"], "segment_type": "large",
            "segment_pool_id": (0, whole["pool"]), "is_expandable": whole["kind"] == "vmm",
            "frames": frames(sites.get(whole["site"]), whole), "blocks": split(whole, parts, sites)}


def trace(segments: list[Item], ages: dict[int, float]) -> list[list[Item]]:
    """The allocations on each device that are still live, oldest first."""
    devices = max((s["device"] for s in segments), default=-1) + 1
    traces: list[list[Item]] = [[] for _ in range(devices)]
    for found in sorted(segments, key=lambda s: -ages[s["address"]]):
        for one in found["blocks"]:
            traces[found["device"]].append({
                "action": "alloc", "addr": one["address"], "size": one["size"], "stream": found["stream"],
                "time_us": int(-ages[found["address"]] * 1e6), "frames": one["frames"]})
    return traces


def snapshot(report: Item) -> Item:
    """A snapshot in PyTorch's form, from the document of `memstow report --json` with all sites."""
    cuda = report["cuda"] or {"blocks": [], "sites": []}
    sites = {site["site"]: site for site in cuda["sites"]}
    parts: dict[int, list[Item]] = {}
    for item in cuda["blocks"]:
        if item["part_of"] is not None:
            parts.setdefault(item["part_of"], []).append(item)
    wholes = [b for b in cuda["blocks"] if b["part_of"] is None and b["kind"] in VIEWED]
    for whole in wholes:
        # Physical memory (the kind "vmm") has no address. Its "address" in the report is only a number, from which a
        # distinct address is made here.
        if whole["kind"] == "vmm":
            whole["address"] = (1 << 60) + whole["address"] * (1 << 40)
    segments = [segment(whole, parts.get(whole["address"], []), sites) for whole in wholes]
    return {"segments": segments, "device_traces": trace(segments, {w["address"]: w["age_seconds"] for w in wholes}),
            "allocator_settings": {}, "external_annotations": []}


def read(subject: str) -> Item:
    command = [os.environ.get("MEMSTOW", "memstow"), "report", subject, "--json", "--top=1000000"]
    done = subprocess.run(command, stdout=subprocess.PIPE)
    if done.returncode:
        sys.exit(done.returncode)
    report: Item = json.loads(done.stdout)
    return report


def main() -> None:
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        sys.stderr.write("usage: python3 -m memstow_viz FILE|PID OUT.pickle\n")
        sys.exit(2)
    made = snapshot(read(sys.argv[1]))
    with open(sys.argv[2], "wb") as out:
        pickle.dump(made, out)


if __name__ == "__main__":
    main()
