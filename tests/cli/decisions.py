"""memstow decisions shows the trace of a ledger or a snapshot, as text or as JSON. A trace without a fault passes
--check."""
import json
import struct

import _decisions
from _ledger import MIB, Ledger, simple
from support import memstow

simple().save("none.mst")
assert memstow("decisions", "none.mst").stdout == "no decisions: no policy was set, and no trigger tripped\n"
memstow("decisions", "none.mst", "--check")
assert json.loads(memstow("decisions", "none.mst", "--json").stdout)["lines"] == []

_decisions.clean().save("x.mst")
text = memstow("decisions", "x.mst", "--check").stdout
assert max(map(len, text.split("\n"))) <= 80, text
expected = """\
Set  unet.safetensors (model 1): policy free
Set  unet.safetensors (model 1): policy free, set by comfyui on patcher 101 of
     inner model 201
Set  clip.safetensors (model 2): policy keep
Set  clip.safetensors (model 2): policy keep, set by comfyui on patcher 102 of
     inner model 202
Set  feature cache (custom 5): policy free, set by comfyui of inner model 205
Set  feature cache (custom 5): policy stow

Trigger 1: run ended (ok), 11.0 s after the start
  unet.safetensors (model 1)
    freed, 512.0 MiB before, 1.0 MiB left
    policy free, found by parent
    the program still holds this memory
  feature cache (custom 5)
    stowed, 128.0 MiB, 127.0 MiB in files
    policy free, found by inner, stow instead: unknown cache class
  clip.safetensors (model 2)
    kept, 256.0 MiB
    policy keep, found by patcher
  vae.safetensors (model 3)
    kept, 256.0 MiB
    policy keep, found by default; no policy was set, which counts as keep
  an old model (model 4)
    left behind, 48.0 MiB
    policy free; the owner is gone: it left this memory
      held by node cache: node 4
      held by list in module planted_nodes: KEEP
  idle (model 6)
    empty
    policy keep; it has nothing
  2 kept, 1 stowed, 1 freed, 0 blocked, 1 left behind; owners with memory: 5
  before, 4 after; 1.2 GiB before, 689.0 MiB after; 638.0 MiB given back in
  1.2 s

Set  clip.safetensors (model 2): policy none, set by comfyui on patcher 102 of
     inner model 202
Set  clip.safetensors (model 2): policy free, set by comfyui of inner model
     202
Set  clip.safetensors (model 2): policy free

Trigger 2: pressure (too much memory is in use), 33.0 s after the start
  clip.safetensors (model 2)
    blocked, 256.0 MiB
    policy free, found by inner; not now: it is in use, a scope of it is open
  0 kept, 0 stowed, 0 freed, 1 blocked; owners with memory: 1 before, 1 after;
  256.0 MiB before, 256.0 MiB after; 0 B given back in 0.000 s

No fault in 38 lines.
"""
assert text == expected, text
document = json.loads(memstow("decisions", "x.mst", "--json").stdout)
assert (document["format"], document["version"], document["faults"]) == ("memstow-decisions", 1, []), document
assert document["lines"] == [{"n": n + 1, "t": (n + 2) * 10**9, **line} for n, line in enumerate(_decisions.LINES)]
assert document["owners"][4] == {"id": 5, "kind": "custom", "name": "feature cache", "origin": ""}
assert document["process"] == {"pid": 1000, "name": "program", "start_ns": 10**9, "start_wall_ns": 10**18}
assert (document["lines_before"], document["lines_lost"]) == (0, 0)

# If the ring of the trace has been filled more than once, a line says that earlier lines are gone. Policies that were
# set in these lines are not reported as missing.
ledger = _decisions.clean(_decisions.LINES[6:], first=2000)
whole, half = ledger.trace(), 8 * 60
ledger.trace = lambda: struct.pack("<QQQQ", len(whole) - 32, half, half + len(whole) - 32,
                                   9) + whole[-half:] + whole[32:-half]
ledger.save("round.mst")
done = memstow("decisions", "round.mst", "--check")
assert done.stdout.startswith("1,999 earlier lines are gone: the trace keeps 1 MiB\n"), done.stdout
assert len(json.loads(memstow("decisions", "round.mst", "--json").stdout)["lines"]) == len(_decisions.LINES) - 6

# The trace has a trigger that was not finished, a line of an unknown kind, and arbitrary text. Three lines were lost.
ledger = _decisions.clean(_decisions.LINES[:15])
ledger.header["lost"] = {13: 3}
ledger.line(kind="NEW", note="x" * 200 + " \x1b[31m\n")
ledger.line()
ledger.save("begun.mst")
text = memstow("decisions", "begun.mst", "--check").stdout
assert text.startswith("3 lines could not be written\n") and "\n  It was not finished.\n" in text, text
assert "\n    to be done: free, 512.0 MiB\n" in text and "\nAlso {" in text and "\x1b" not in text, text
assert max(map(len, text.split("\n"))) <= 80, text
assert json.loads(memstow("decisions", "begun.mst", "--json").stdout)["lines_lost"] == 3
assert memstow("report",
               "begun.mst").stdout.endswith("  lines of the trace of decisions that could not be written: 3\n")

# A line REFUSED has the reason why memory was not moved. If a trigger decided the move, the reason is shown with this
# trigger, below the owner. If no trigger decided the move, the reason is shown on a line of its own. A line REFUSED
# that the program wrote is never shown with a trigger.
refused = dict(kind="REFUSED", owner=_decisions.CACHE, move="out", because="the disk is full", bytes=128 * MIB,
               pieces=1)
full = [dict(kind="SET", owner=_decisions.CACHE, owner_kind="custom", name="feature cache", keys=[0, 0], policy="stow",
             priority=0),
        dict(kind="TRIGGER", trigger=1, reason="request", text="", needed=0, owners=1, before_bytes=128 * MIB),
        dict(kind="DECISION", trigger=1, owner=_decisions.CACHE, policy="stow", action="stow", why="policy",
             bytes=128 * MIB), refused,
        dict(kind="CATEGORY", trigger=1, owner=_decisions.CACHE, category="blocked", before_bytes=128 * MIB,
             after_bytes=128 * MIB, stowed_bytes=0, error="ENOSPC"),
        dict(kind="REMAINING", trigger=1, owner=_decisions.CACHE, bytes=128 * MIB, stowed_bytes=0, why="refused"),
        dict(kind="ACT", trigger=1, kept=0, stowed=0, freed=0, blocked=1, models_before=1, models_after=1,
             before_bytes=128 * MIB, after_bytes=128 * MIB, moved_bytes=0, released_bytes=0, given_bytes=0,
             took_ns=1000)]
ledger = _decisions.clean(
    [*full, {**refused, "because": "locked in memory (mlock)", "bytes": MIB}, {**refused, "by": "me"}])
ledger.save("full.mst")
text = memstow("decisions", "full.mst", "--check").stdout
assert """
  feature cache (custom 5)
    blocked, 128.0 MiB, ENOSPC
    policy stow
    not moved: the disk is full, 128.0 MiB
  0 kept,""" in text and "it was not moved" not in text, text
assert text.count("the disk is full, 128.0 MiB") == 1 and text.count("\nAlso ") == 1 and '"me"}' in text, text
assert "\n\nRefused  feature cache (custom 5): not moved: locked in memory (mlock), 1.0\n         MiB\n" in text, text
# Among a trigger's lines is a line REFUSED of an owner that the trigger did not look at. This owner's memory was to be
# brought back.
_decisions.clean([
    *full[:3], {**refused, "owner": _decisions.CLIP, "move": "back", "because": "the disk answered with an error"},
    *full[3:]
]).save("other.mst")
text = memstow("decisions", "other.mst", "--check").stdout
assert ("\nRefused  clip.safetensors (model 2): not brought back: the disk answered with\n         an error, 128.0 "
        "MiB\n") in text, text

# A decision has the registered name of its owner. If the ledger lists no owners, it has the name in the owner's last
# SET, or only the owner's number.
ledger = Ledger()
for line in _decisions.LINES[:1] + _decisions.LINES[10:11]:
    ledger.line(**line)
ledger.line(kind="DECISION", trigger=1, owner=1, policy="free", action="free", why="policy", bytes=5)
ledger.line(kind="DECISION", trigger=1, owner=77, policy="free", action="free", why="policy", bytes=5)
ledger.save("names.mst")
text = memstow("decisions", "names.mst").stdout
assert "\n  unet.safetensors (model 1)\n" in text and "\n  (owner 77)\n" in text, text

# Models of one name are told apart by their files.
ledger = Ledger()
for number, file in enumerate(("wan.safetensors", "flux.safetensors"), 1):
    ledger.owner(1, "MODEL WAN21", file)
    ledger.line(kind="SET", owner=number, owner_kind="model", name="MODEL WAN21", keys=[number, 0], policy="free",
                priority=0)
ledger.save("files.mst")
text = memstow("decisions", "files.mst").stdout
for number, file in enumerate(("wan.safetensors", "flux.safetensors"), 1):
    assert f"Set  MODEL WAN21 ({file}, model {number}): policy free\n" in text, text
