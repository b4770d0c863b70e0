"""memstow owners lists all owners with their policies and memory. Adopted memory counts for the new owner."""
import json

from _ledger import Ledger, MIB, simple
from support import memstow

ledger = Ledger()
module = ledger.module("/opt/program")
unet = ledger.owner(1, "unet", "UNETLoader", policy=2, priority=-3)
clip = ledger.owner(1, "clip", "CLIPLoader", policy=1)
loading = ledger.owner(1, "loading", retired=1, adopted_by=unet)
node = ledger.owner(2, "KSampler")
gone = ledger.owner(1, "gone", retired=1)
leaked = ledger.owner(4, "leaked\x1b[31m", retired=1, policy=3)
runs = [ledger.owner(3, f"run {i}", retired=1, outcome=i) for i in range(20)]
on = ledger.owner(3, "run that is on")
for owners, size in (({"model": unet}, 4), ({"model": loading, "node": node}, 2), ({"model": clip}, 1),
                     ({"model": leaked}, 3), ({"node": node, "run": runs[3]}, 5), ({}, 5)):
    ledger.count(ledger.site(module, tag=ledger.tag(**owners) if owners else 0), alloc=(size * MIB, size))
ledger.save("x.mst")

text = memstow("owners", "x.mst").stdout
lines = [line.split() for line in text.split("\n")]
assert "  run 3, out-of-memory\n" in text, text
assert lines[0] == "program[1000], exited: 20.0 MiB live in 20 blocks".split(), text
shown = {line[0]: line for line in lines if line and line[0].isdigit() and line[1] != "retired"}
assert list(shown) == ["4", "1", "10", "6", "2", "27"], text # sorted by memory
assert shown["1"] == "1 model live stow -3 6.0 MiB 6 30.0 % unet (UNETLoader)".split(), text
assert shown["2"][:5] == "2 model live keep 0".split()
assert shown["6"][:9] == "6 custom retired free 0 3.0 MiB 3 15.0".split(), text
assert "5.0 MiB         5  25.0 %  untagged" in text and "\x1b" not in text
assert "\n21 retired owners hold nothing\n" in text and "stowed" not in text, text

document = json.loads(memstow("owners", "x.mst", "--json").stdout)
assert (document["format"], document["version"]) == ("memstow-owners", 1)
assert document["process"] == {"pid": 1000, "name": "program", "running": False}
assert (document["live_bytes"], document["untagged_bytes"]) == (20 * MIB, 5 * MIB)
owners = {owner["id"]: owner for owner in document["owners"]}
assert len(owners) == 27
# the ledger has the outcome 4, which does not exist: it is shown as None
assert [owners[run]["outcome"] for run in runs[:5]] == ["ok", "failed", "cancelled", "out-of-memory", None]
assert owners[on]["outcome"] is None
assert owners[unet] == {"id": unet, "kind": "model", "name": "unet", "origin": "UNETLoader", "policy": "stow",
                        "priority": -3, "state": "live", "outcome": None, "adopted_by": None, "live_bytes": 6 * MIB,
                        "live_blocks": 6, "stowed_bytes": 0, "device_stowed_bytes": 0, "moving": None, "moved_bytes": 0,
                        "to_move_bytes": 0, "cuda_bytes": 0, "cuda_blocks": 0, "vbar_bytes": 0,
                        "vbar_resident_bytes": 0}
assert owners[loading]["adopted_by"] == unet and owners[loading]["live_bytes"] == 0
assert owners[gone]["policy"] is None and owners[gone]["state"] == "retired"
assert sum(o["live_bytes"] for o in owners.values() if o["kind"] in ("model", "custom")) == 10 * MIB

# Stowed memory is shown with the name. The ledger has the figure of the last move, which may be more than is live now.
# The figure that is shown is never more than what is live.
ledger = Ledger()
module = ledger.module("/opt/program")
for name, stowed in (("put away", 3), ("read again", 9)):
    ledger.count(ledger.site(module, tag=ledger.tag(model=ledger.owner(1, name, stowed=stowed * MIB))),
                 alloc=(4 * MIB, 1))
ledger.owner(1, "freed", stowed=MIB)
ledger.owner(1, "gone", retired=1)
ledger.save("x.mst")
text = memstow("owners", "x.mst").stdout
assert "  put away, 3.0 MiB stowed\n" in text and "  read again, 4.0 MiB stowed\n" in text and "  freed\n" in text, text
assert text.endswith("\n1 retired owner holds nothing\n"), text
by_model = memstow("report", "x.mst", "--by=model").stdout
assert "\n  3.0 MiB of put away: stowed, in files\n  4.0 MiB of read again: stowed, in files\n" in by_model, by_model
assert "stowed" not in memstow("report", "x.mst", "--by=module").stdout
owners = json.loads(memstow("owners", "x.mst", "--json").stdout)["owners"]
assert [owner["stowed_bytes"] for owner in sorted(owners, key=lambda o: o["id"])] == [3 * MIB, 4 * MIB, 0, 0], owners

# Models of one name are told apart by their files.
ledger = Ledger()
for origin in ("a.safetensors", "b.safetensors"):
    ledger.count(ledger.site(0, tag=ledger.tag(model=ledger.owner(1, "UNET", origin, stowed=MIB))), alloc=(MIB, 1))
ledger.save("files.mst")
by_model = memstow("report", "files.mst", "--by=model").stdout
for origin in ("a.safetensors", "b.safetensors"):
    assert f"  1.0 MiB of UNET ({origin}): stowed, in files\n" in by_model, by_model

# The ledger has a circle of adoptions, and names owners that do not exist. A damaged file may be like this.
ledger = Ledger()
module = ledger.module("/opt/program")
first = ledger.owner(1, "first", adopted_by=2)
second = ledger.owner(1, "second", adopted_by=1)
third = ledger.owner(1, "third", adopted_by=99)
for owner in (first, third, 77):
    ledger.count(ledger.site(module, tag=ledger.tag(model=owner)), alloc=(MIB, 1))
ledger.save("ring.mst")
found = json.loads(memstow("owners", "ring.mst", "--json").stdout)
assert found["live_bytes"] == 3 * MIB and found["untagged_bytes"] == 2 * MIB

simple().save("none.mst")
assert "\nno owner was ever registered\n" in memstow("owners", "none.mst").stdout
open("other", "w").write("no ledger")
assert memstow("owners", "other", status=3).stderr.count("\n") == 1
