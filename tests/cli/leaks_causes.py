"""memstow leaks makes one finding for each cause:
- All memory that one place holds has one cause, whoever allocated it. The trace of decisions names such places.
- If the place is not known, all memory that one line of Python allocated for one owner has one cause.
- What a retired model left behind is a cause of its own. Exception: other findings have that memory, or name all places
  that hold it.
A finding names the holder of the memory first. Memory that comes with threads is counted separately."""
import json

from _ledger import RUNNING, Ledger, path_of
from support import memstow

MODEL, NODE, RUN = 1, 2, 3
RUNS = 20


class Runs(Ledger):
    def __init__(self):
        super().__init__(state=RUNNING)
        self.module_id = self.module("/opt/program")
        self.runs = [self.owner(RUN, f"run {number}", retired=1) for number in range(RUNS)]
        for number, run in enumerate(self.runs):
            self.ends(run, (number + 1) * 10**9)

    def ends(self, owner, when_ns):
        record = self.owners[owner - 1]
        self.owners[owner - 1] = record[:56] + when_ns.to_bytes(8, "little") + record[64:]

    def grows(self, stack, size=4096, model=0, node=0):
        for run in self.runs:
            self.count(self.site(self.module_id, tag=self.tag(model, node, run), stack=stack), alloc=(size, 1))

    def line_at(self, name, line, natives, module=None):
        """A stack: a line of Python, and then native frames at these addresses."""
        outer = self.node([self.python(name, "/opt/nodes.py", line)])
        return self.node([self.frame(address, module or self.module_id) for address in natives], outer)


def leaks(file, status=1):
    return json.loads(memstow("leaks", file, "--json", status=status).stdout)


# ---- one line of Python with many native call stacks is one cause; another line of the same owner is another cause

ledger = Runs()
sampler = ledger.owner(NODE, "KSampler", "node 3")
for number in range(44):
    ledger.grows(ledger.line_at("sample", 10, [0x1000 + 16 * number]), node=sampler)
ledger.grows(ledger.line_at("decode", 20, [0x9000]), size=8192, node=sampler)
ledger.save("lines.mst")
document = leaks("lines.mst")
assert document["found"] == len(document["leaks"]) == 2, [leak["stack"] for leak in document["leaks"]]
first, second = document["leaks"]
assert (first["stacks"], first["bytes_per_run"], first["live_bytes"],
        first["live_blocks"]) == (44, 44 * 4096, 44 * 4096 * RUNS, 44 * RUNS), first
assert (second["stacks"],
        second["bytes_per_run"]) == (1, 8192) and len(first["parts"]) == 44 and len(second["parts"]) == 1, second
assert sum(part["bytes_per_run"] for part in first["parts"]) == first["bytes_per_run"]
assert first["curve"] == [[run, 44 * 4096] for run in range(RUNS)], first["curve"]
text = memstow("leaks", "lines.mst", status=1).stdout
assert "\n2 leaks found\n" in text and "at 44 call stacks, most at this one:" in text, text

# ---- memory that comes with OpenMP's threads is not a leak of the node that calls OpenMP

ledger = Runs()
sampler = ledger.owner(NODE, "KSampler", "node 3")
for number, name in enumerate(("libgomp-24e2ab19.so.1", "libiomp5.so", "libomp.so.5")):
    address = 0x100000 * (number + 1)
    module = ledger.module(f"/usr/lib/{name}", bias=address)
    for line in range(5 * number, 5 * number + 5):
        ledger.grows(ledger.line_at(f"sample{line}", 10 + line, [address + 0x1000 + 16 * line], module=module),
                     node=sampler)
ledger.save("threads.mst")
document = leaks("threads.mst", status=0)
assert document["verdict"] == "no_leak", document["not_leaks"]
assert document["not_leaks"]["threads"] == {"sites": 15, "live_bytes": 15 * 4096 * RUNS}, document["not_leaks"]
assert "came with threads that were started" in memstow("leaks", "threads.mst").stdout

# ---- models of one name from several files are told apart

ledger = Runs()
for file in ("a.st", "b.st"):
    ledger.grows(ledger.line_at("load", 5, [0x2000]), model=ledger.owner(MODEL, "WAN21", file),
                 node=ledger.owner(NODE, "A node with a name that is long", "node 17"))
ledger.save("files.mst")
document = leaks("files.mst")
assert {leak["origin"] for leak in document["leaks"]} == {"a.st", "b.st"} and document["found"] == 2, document["leaks"]
text = memstow("leaks", "files.mst", status=1).stdout
assert "model WAN21 (a.st)\n" in text and "model WAN21 (b.st)\n" in text, "their files are not cut away"
assert max(map(len,
               text.split("\n"))) <= 80 and text.count("node A node with a name that is long (node 17)\n") == 2, text

# ---- early runs use one call stack of a line of Python, and later runs another one, because the native frames below
# ---- the line change. The two stacks count as one site if both of these are true:
# ---- - the first run with the second stack is the last run with the first stack, or the run after it
# ---- - a run allocates similar amounts with the two stacks

CHANGE = 9


def changing(*stacks):
    """Returns the findings if the runs use these stacks of one line. Each stack is (first run, run after the last,
    allocated, left)."""
    ledger = Runs()
    for number, (first, end, allocated, left) in enumerate(stacks):
        stack = ledger.line_at("sample", 10, [0x1000 + 16 * number])
        for run in ledger.runs[first:end]:
            ledger.count(ledger.site(ledger.module_id, tag=ledger.tag(0, 0, run), stack=stack), alloc=(allocated, 1),
                         free=(allocated - left, 0))
    ledger.save("changing.mst")
    document = leaks("changing.mst", status=None)
    assert document["verdict"] == ("leak" if document["leaks"] else "no_leak"), document["why"]
    plateau = document["not_leaks"]["plateau"]["live_bytes"]
    assert sum(leak["live_bytes"] for leak in document["leaks"]) + plateau == sum(
        (end - first) * left for first, end, _, left in stacks), document
    return [(leak["bytes_per_run"], leak["judged"], leak["oldest_run"]) for leak in document["leaks"]]


assert changing((0, CHANGE, 1500, 1500), (CHANGE, RUNS, 1600, 1600)) == [(1556.25, 16, "run 0")], "also a small leak"
assert changing((0, 5, 4096, 4096), (4, 12, 4096, 4096), (12, RUNS, 4096, 4096)) == [(4352, 16, "run 0")], "twice"
assert changing((0, CHANGE, 4096, 0), (CHANGE, RUNS, 4096, 4096)) == [], "a cache that dropped the first runs' memory"
assert changing((0, CHANGE, 4096, 4096), (0, CHANGE, 4096, 0), (CHANGE, RUNS, 4096, 0),
                (CHANGE, RUNS, 4096, 4096)) == [(4096, 16, "run 0")], "the second stack of the line keeps nothing"
assert changing((0, CHANGE, 100, 0), (CHANGE, RUNS, 4096, 4096)) == [(4096, 9, f"run {CHANGE}")], "something else"
assert changing((0, 4, 4096, 0), (CHANGE, RUNS, 4096, 4096)) == [(4096, 9, f"run {CHANGE}")], "no run between"
assert changing((0, RUNS, 4096, 0), (CHANGE, RUNS, 4096, 4096)) == [(4096, 9, f"run {CHANGE}")], "the other goes on"

# ---- the trace names a holder: the memory that a holder has is one cause, whoever allocated it. Among several lines
# ---- about the same memory, the last line counts

ledger, held = Runs(), {"/opt/a": "memo", "/opt/b": "memo", "/opt/c": "other", "/opt/d": None}
nodes = {module: ledger.owner(NODE, f"Node {module[-1]}", "node 1") for module in held}
for size, (module, pack) in enumerate(held.items(), 4):
    site = ledger.module(module, bias=size << 24)
    for run in ledger.runs:
        ledger.count(ledger.site(site, tag=ledger.tag(0, nodes[module], run)), alloc=(size << 10, 1))
    about = {"kind": "HELD", "by": "test", "path": path_of(module), "node": nodes[module], "blocks": RUNS,
             "followed": 3, "held": 3}
    ledger.line(**about, pack="gone", place="gone.list", holders=["gone.list[0]"])
    if pack:
        ledger.line(**about, pack=pack, place=f"{pack}.kept", holders=[f"{pack}.kept['{module}']"])
    else:
        ledger.line(kind="HELD", by="test", path=path_of(module), blocks=0, holders=[])
        ledger.line(**about, holders=["an object of type c.Thing[0]"])
ledger.save("held.mst")
document = leaks("held.mst")
assert document["found"] == 3 and [leak["held_by"]
                                   for leak in document["leaks"]] == ["memo", None, "other"], document["leaks"]
both, nobodys, other = document["leaks"]
assert list(both)[:3] == ["held_by", "held_at",
                          "holders"] and both["held_at"] == "memo.kept" and len(both["holders"]) == 1, both
assert (both["bytes_per_run"],
        both["node"]) == (9 << 10, "Node b") and {part["node"] for part in both["parts"]} == {"Node a", "Node b"}, both
assert nobodys["node"] == "Node d" and other["node"] == "Node c", (nobodys, other)
text = memstow("leaks", "held.mst", status=1).stdout
assert "\n3 leaks found\n" in text, text
assert text.index("held by memo.kept['/opt/b']") < text.index("node Node b (node 1)"), text
assert "and 1 more owner\n" in text, text

# ---- the trace names the holder of a retired owner: if one place holds two owners, they are one cause

ledger = Runs()
for name in ("UNET", "CLIP"):
    gone = ledger.owner(MODEL, name, f"{name}.st", retired=1)
    ledger.ends(gone, 2 * 10**9)
    ledger.count(ledger.site(ledger.module_id, tag=ledger.tag(gone), stack=ledger.line_at("load", 5, [0x3000])),
                 alloc=(1 << 20, 1))
    ledger.line(kind="HELD", by="test", owner=gone, pack="memo", place="memo.kept",
                holders=[f"memo.kept['{name}']", "other.list[0]"])
ledger.save("gone.mst")
document = leaks("gone.mst")
assert document["found"] == 1 and [one["same_cause"]
                                   for one in document["retired"]] == [False, True], document["retired"]
one = document["retired"][0]
assert list(one)[:3] == ["held_by", "held_at",
                         "holders"] and (one["held_by"], one["held_at"]) == ("memo", "memo.kept"), one
text = memstow("leaks", "gone.mst", status=1).stdout
lines = [line.strip() for line in text.split("\n")]
held = next(number for number, line in enumerate(lines) if "held by memo.kept[" in line)
assert "1 leak found" in lines and held < next(
    number for number, line in enumerate(lines) if "model UNET (UNET.st)" in line or "model CLIP" in line), text

# ---- two places hold what a model left: both are named, first the place that holds more

ledger = Runs()
gone, module = ledger.owner(MODEL, "UNET", "unet.st", retired=1), ledger.module("/opt/weights", bias=1 << 24)
ledger.ends(gone, 2 * 10**9)
ledger.count(ledger.site(module, tag=ledger.tag(gone)), alloc=(2 << 20, 1))
ledger.count(ledger.site(ledger.module_id, tag=ledger.tag(gone)), alloc=(1 << 20, 1))
ledger.line(kind="HELD", by="test", owner=gone, pack="memo", place="memo.kept", holders=["memo.kept[0]"])
ledger.line(kind="HELD", by="test", path=path_of("/opt/weights"), model=gone, blocks=1, followed=1, held=1, pack="lora",
            place="lora.backups", holders=["lora.backups['a']"])
ledger.save("two.mst")
document = leaks("two.mst")
assert document["found"] == 1 and document["retired"][0]["held_by"] == "lora", document["retired"]
assert document["retired"][0]["holders"] == ["lora.backups['a']", "memo.kept[0]"], document["retired"]
text = memstow("leaks", "two.mst", status=1).stdout
assert 0 < text.index("held by lora.backups['a']") < text.index("held by memo.kept[0]") < text.index(
    "model UNET (unet.st)"), text

# ---- two models of one name are gone: the latest search that found a named holder counts, even if a later search
# ---- found a nameless object


def held_by(*places):
    ledger = Runs()
    for number, (pack, place) in enumerate(places):
        gone = ledger.owner(MODEL, "UNET", "unet.st", retired=1)
        ledger.ends(gone, (2 + number) * 10**9)
        ledger.count(ledger.site(ledger.module_id, tag=ledger.tag(gone)), alloc=(1 << 20, 1))
        ledger.line(kind="HELD", by="test", owner=gone, pack=pack, place=place, holders=[f"{place}[{number}]"])
    ledger.save("names.mst")
    [one] = leaks("names.mst")["retired"]
    return one["held_by"], one["holders"]


nameless = "", "an object of type builtins.dict"
assert held_by(("memo", "memo.old"), ("memo", "memo.kept")) == ("memo", ["memo.kept[1]"])
assert held_by(("memo", "memo.kept"), nameless) == ("memo", ["memo.kept[0]"])
assert held_by(nameless, ("memo", "memo.kept"), nameless) == ("memo", ["memo.kept[1]"])
assert held_by(nameless, nameless)[1] == [f"{nameless[1]}[1]"]

# ---- place A holds memory that grows, so a finding names A. A also holds memory that a retired model left:
# ---- - if A holds all memory that the model left, the model is no cause of its own
# ---- - if place B holds a part of it, the model is a cause of its own, unless a finding names B, too


def pack_place(name):
    return {"pack": "pack", "place": f"pack.{name}"}


def beside_growth(growing, of_owner, of_site=None):
    """Returns the number of findings, and whether the retired model is one of them. growing: the places that hold
    memory that grows. of_owner: the places that the model's line of the trace names as holders. of_site: the place that
    holds half of what the model left."""
    ledger = Runs()
    gone, weights = ledger.owner(MODEL, "UNET", "unet.st", retired=1), ledger.module("/opt/weights", bias=1 << 24)
    ledger.ends(gone, 2 * 10**9)
    for number in range(2):
        ledger.count(ledger.site(weights if number else ledger.module_id, tag=ledger.tag(gone)), alloc=(1 << 20, 1))
    for number, name in enumerate(growing, 2):
        module = f"/opt/{name}"
        site = ledger.module(module, bias=number << 24)
        for run in ledger.runs:
            ledger.count(ledger.site(site, tag=ledger.tag(0, 0, run)), alloc=(4096 + number, 1))
        ledger.line(kind="HELD", by="test", path=path_of(module), blocks=RUNS, followed=3, held=3,
                    holders=[f"pack.{name}[0]"], **pack_place(name))
    others = {"other_places": [*map(pack_place, of_owner[1:]), "damaged", {}]} if of_owner[1:] else {}
    ledger.line(kind="HELD", by="test", owner=gone, **pack_place(of_owner[0]), **others,
                holders=[f"pack.{name}[0]" for name in of_owner])
    if of_site:
        ledger.line(kind="HELD", by="test", path=path_of("/opt/weights"), model=gone, blocks=1, followed=1, held=1,
                    holders=[f"pack.{of_site}[0]"], **pack_place(of_site))
    ledger.save("beside.mst")
    document = leaks("beside.mst")
    return document["found"], not document["retired"][0]["same_cause"]


assert beside_growth(["backups"], ["backups"]) == (1, False)
assert beside_growth(["backups"], ["kept"]) == (2, True)
assert beside_growth(["backups"], ["backups", "kept"]) == (2, True), "kept has weights that the finding does not name"
assert beside_growth(["backups"], ["kept", "backups"]) == (2, True)
assert beside_growth(["backups", "kept"], ["backups", "kept"]) == (2, False)
assert beside_growth(["backups"], ["kept"], "backups") == (2, True), "backups has only half of what the model left"
assert beside_growth(["backups"], ["backups"], "kept") == (2, True)
assert beside_growth(["backups", "kept"], ["backups"], "kept") == (2, False)
