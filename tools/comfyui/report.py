"""The report of a run. It has the memory of the process, of each model and of each share (the memory of one model,
node and run): before the run, at its peak and after it. For each node that ran, it has the memory before the node, at
the peak and after it. For each model that remains, it says why. In: the records of hooks.py, meter.py and runs.py. Out:
a JSON document, a text, and one line for the log."""
import ctypes
import os
import re
import textwrap
from typing import Any, Optional

from . import memstow
from .hooks import resident

WIDTH, NAME = 88, 54 # widths of the text and of its first column


def size(number: Optional[int]) -> str:
    """A size as text."""
    if number is None:
        return "?"
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(number) >= scale:
            return f"{number / scale:.1f} {unit}"
    return f"{number} B"


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t)
                for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
                             "fordblks", "keepcost")]


def label(name: str, origin: str) -> str:
    """The name of a model for people, with its origin: two models of one class differ by their files."""
    return f"{name} ({origin})" if origin else name


def held_by_glibc() -> Optional[int]:
    """Bytes that are free inside glibc's heap, and not given back to the system. None if glibc cannot be asked."""
    try:
        ask = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    ask.restype = _Mallinfo2
    return ask().fordblks


def why_here(identity: Any, action: str, node_cache: list, holders: list, is_loaded: bool) -> list[str]:
    """The reasons why a model's memory was not given back."""
    reasons = []
    if action == "keep":
        reasons.append("policy: keep")
    elif action == "stow":
        reasons.append("policy: stow")
    if node_cache:
        reasons.append(f"node cache: {', '.join(node_cache)}")
    if holders:
        reasons.append(f"held by {'; '.join(holders)}")
    pinned = sum(len(getattr(patcher, "pinned", ())) for patcher in list(identity.patchers)[:1])
    if pinned:
        reasons.append(f"pinned: {pinned} weights")
    if is_loaded and action == "free":
        reasons.append("in ComfyUI's list of loaded models")
    return reasons


def owner_line(identity: Any, figures: Any, before: Any, ruling: Any, action: str, why: list) -> dict:
    """A model's memory on the host and on CUDA devices, before and after the trigger that applied the policies; and how
    much of it is moved out after the trigger."""
    return {"owner": identity.owner.id, "type": identity.kind, "name": identity.owner.name, "origin": identity.origin,
            "policy": ruling.policy, "rule": ruling.detail or ruling.rule, "action": action,
            "before_bytes": before.live_bytes, "after_bytes": figures.live_bytes,
            "resident_bytes": figures.resident_bytes, "stowed_bytes": figures.stowed_bytes,
            "before_cuda_bytes": before.cuda_bytes, "after_cuda_bytes": figures.cuda_bytes,
            "device_stowed_bytes": figures.device_stowed_bytes, "why": why}


def about(run: dict) -> str:
    """The subject of a report in words: a run, or a trigger outside of runs."""
    return f"run {run['number']}" if run["outcome"] else f"a trigger after run {run['number']}: {run['reason']}"


def document(run: dict, watch: Any, owners: list, freed: list, given: int, seconds: float, notes: list) -> dict:
    now = resident()
    return {"format": "memstow-comfyui-run", "version": 1, "run": run["number"], "prompt": run["prompt_id"],
            "reason": run["reason"], "outcome": run["outcome"], "about": about(run),
            "rss": {"before_bytes": run["rss"], "peak_bytes": max(run["rss"], now, watch.peak if run["outcome"] else 0),
                    "after_bytes": now, "peak_is": "the highest at the end of a node"},
            "glibc_free_bytes": held_by_glibc(), "given_bytes": given, "trigger_seconds": round(seconds, 3),
            "live": watch.meter.live(), "shares": watch.meter.shares(),
            "peak_of_shares_is": "the highest at the end of a node", "owners": owners, "freed": freed,
            "nodes": watch.nodes if run["outcome"] else [], "notes": notes}


def on_both(host: int, device: int) -> str:
    """The size on the host, and the size on CUDA devices unless that is 0."""
    return f"{size(host)} and {size(device)} on CUDA devices" if device else size(host)


def held(owners: list, when: str) -> list[int]:
    return [sum(owner[f"{when}_{place}bytes"] for owner in owners) for place in ("", "cuda_")]


def alike(owners: list) -> list[str]:
    """Each model with the reason why it is there. Models whose texts differ only within brackets share a line: "17 of
    MODEL WAN21 (a.st), held by p.kept[…]"."""
    groups: dict = {}
    for owner in owners:
        words = ", ".join([label(owner["name"], owner["origin"]), *owner["why"]])
        groups.setdefault(re.sub(r"\[[^]]*]", "[…]", words), []).append(words)
    return [f"{len(some)} of {words}" if len(some) > 1 else some[0] for words, some in groups.items()]


def why_of(owner: dict, is_freed: bool) -> list[str]:
    """The policy of a model, and after it the reasons why the model is still there."""
    reasons = [why for why in owner["why"] if not why.startswith("policy: ")]
    if owner["policy"] in ("stow", "free") and owner["action"] == "keep":
        reasons.insert(0, "not now")
    return [f"policy: {owner['policy'] or 'none set, so ComfyUI decides'}", *(["freed"] if is_freed else reasons)]


def line(found: dict) -> str:
    """The report as one line, for ComfyUI's log."""
    count = {action: [o for o in found["owners"] if o["action"] == action] for action in ("keep", "stow", "free")}
    parts = [f"kept {len(count['keep'])} ({on_both(*held(count['keep'], 'after'))})"]
    if count["stow"]:
        parts.append(f"stowed {len(count['stow'])} ({size(sum(o['stowed_bytes'] for o in count['stow']))})")
    if found["freed"]:
        host, device = (had - has for had, has in zip(held(found["freed"], "before"), held(found["freed"], "after")))
        parts.append(f"freed {len(found['freed'])} ({on_both(host, device)})")
    if count["free"]:
        parts.append(f"not freed {len(count['free'])}: {'; '.join(alike(count['free']))}")
    rss = found["rss"]
    where = f"{found['about']} {found['outcome']}" if found["outcome"] else found["about"]
    return (f"memstow: {where}: {', '.join(parts)}; RSS {size(rss['before_bytes'])} → {size(rss['peak_bytes'])} → "
            f"{size(rss['after_bytes'])}")


def row(name: str, *columns: str) -> str:
    """A row of a table. A name that is too long gets a line of its own."""
    above, name = (f"{name[:WIDTH]}\n", "") if len(name) > NAME else ("", name)
    return f"{above}{name:{NAME}}" + "".join(f" {column:>10}" for column in columns)


def wrapped(words: str, indent: int = 0) -> list[str]:
    """Lines of at most 88 columns."""
    return textwrap.wrap(words, WIDTH, initial_indent=" " * indent, subsequent_indent=" " * (indent + 2),
                         break_long_words=False, break_on_hyphens=False)


def text(found: Optional[dict]) -> str:
    """The report as text."""
    if not found:
        return "no run has ended yet\n"
    lines = [*wrapped(line(found)), "", row("live memory", "before", "at most", "after")]
    if found["live"]:
        lines.append(row("of the process", *map(size, found["live"].values())))
    for owner in found["owners"] + found["freed"]:
        lines.append(
            row(label(owner["name"], owner["origin"]), size(owner["run_before_bytes"]), size(owner["run_peak_bytes"]),
                size(owner["after_bytes"])))
        devices = [owner[f"{key}_cuda_bytes"] for key in ("run_before", "run_peak", "after")]
        if any(devices):
            lines.append(row("  on CUDA devices", *map(size, devices)))
        why = "; ".join(why_of(owner, owner in found["freed"]))
        stowed = f"; {size(owner['stowed_bytes'])} stowed" if owner["stowed_bytes"] else ""
        if owner["device_stowed_bytes"]:
            stowed += f", {size(owner['device_stowed_bytes'])} of it out of CUDA devices"
        lines += wrapped(why + stowed, 4)
    if found["nodes"]:
        lines += ["", row("node, while it ran", "before", "at most", "after")]
    for node in found["nodes"]:
        lines.append(row(f"{node['class']} #{node['node']}", size(node["before_bytes"]), size(node["peak_bytes"]),
                         size(node["after_bytes"])))
    if found["shares"]:
        lines += ["", row("model · node · run", "before", "at most", "after")]
    for share in found["shares"]:
        model = label(share["model_name"] or "-", share["model_origin"] or "")
        name = " · ".join([model, *(share[f"{kind}_name"] or "-" for kind in ("node", "run"))])
        lines.append(row(name, size(share["before_bytes"]), size(share["peak_bytes"]), size(share["after_bytes"])))
        if share["peak_cuda_bytes"]:
            lines.append(
                row("  on CUDA devices", *(size(share[f"{when}_cuda_bytes"]) for when in ("before", "peak", "after"))))
    if found["glibc_free_bytes"] is not None:
        lines += ["", f"free, and kept by glibc: {size(found['glibc_free_bytes'])}"]
    for note in found["notes"]:
        lines += wrapped(f"note: {note}")
    return "\n".join(lines) + "\n"


def folder() -> str:
    """The folder for snapshots. It is chosen here, never by a client."""
    import folder_paths
    path = os.path.join(folder_paths.get_output_directory(), "memstow")
    os.makedirs(path, exist_ok=True)
    return path


def figures_of(owner: Any) -> Any:
    try:
        return memstow.figures(owner)
    except memstow.Error:
        return memstow.Figures()
