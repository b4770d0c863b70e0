"""Tests memstow leaks on ledgers with known sites. The test covers findings, owners and exceptions, as text and as
JSON. It also covers several files, exit codes, and damaged and hostile files."""
import json, struct

import _ledger
from _ledger import Ledger
from support import memstow

MODEL, NODE, RUN = 1, 2, 3
KEEP, FREE = 1, 3


class Runs(Ledger):
    """A process that has made this many runs."""

    def __init__(self, count, on=False, **header):
        super().__init__(state=_ledger.RUNNING if on else _ledger.EXITED, **header)
        self.module_id = self.module("/opt/program")
        self.main = self.node([self.python("main", "/opt/nodes.py", 1)])
        self.runs = [self.owner(RUN, f"run {i}", retired=1) for i in range(count)]
        for run in self.runs:
            self.ends(run, run * 10**9)
        self.stacks = {}
        if on:
            self.on = self.owner(RUN, "the one that is on")

    def ends(self, owner, when_ns):
        record = self.owners[owner - 1]
        self.owners[owner - 1] = record[:56] + struct.pack("<Q", when_ns) + record[64:]

    def stack(self, name):
        if name not in self.stacks:
            self.stacks[name] = self.node([self.python(name, "/opt/nodes.py", 10 + len(self.stacks))], self.main)
        return self.stacks[name]

    def left(self, name, run, size, blocks=1, model=0, node=0, allocated=None):
        """Adds the memory that a run left at the stack with this name. run: its number; None: memory outside of runs;
        "on": memory of the run that has not ended."""
        tag = self.tag(model, node, 0 if run is None else self.runs[run] if isinstance(run, int) else self.on)
        whole = allocated or size
        self.count(self.site(self.module_id, tag=tag, stack=self.stack(name)), alloc=(whole, blocks),
                   free=(whole - size, 0))


def leaks(*words, status=None):
    done = memstow("leaks", *words, "--json", status=status)
    document = json.loads(done.stdout)
    assert (document["format"], document["version"]) == ("memstow-leaks", 1)
    return document


def program(count=20, on=True):
    ledger = Runs(count, on)
    sampler, loader = ledger.owner(NODE, "Sampler", "node 3"), ledger.owner(NODE, "Loader", "node 1")
    kept, gone = ledger.owner(MODEL, "CLIP", "clip.st",
                              policy=KEEP), ledger.owner(MODEL, "UNET", "unet.st", FREE, retired=1)
    for run in range(count):
        ledger.left("leaky", run, 4096, node=sampler)
        ledger.left("kept", run, 8192, model=kept)
        ledger.left("small", run, 100, node=sampler)
        ledger.left("odd", run, 5000 if run % 2 and run > count // 2 else 0, node=loader, allocated=5000)
        ledger.left("replaced", run, 30000 if run > count - 6 else 0, node=sampler, allocated=30000)
    ledger.left("leaky", "on", 1 << 30, node=sampler)
    ledger.left("initialise", 0, 1 << 20, node=loader)
    ledger.left("start", None, 1 << 20)
    ledger.left("load", 1, 1 << 21, model=gone, node=loader)
    ledger.ends(gone, 3 * 10**9)
    ledger.line(kind="HELD", by="test", owner=gone, holders=["old"])
    ledger.line(kind="HELD", by="test", owner=gone, holders=["nodes.held[0]", 7, "bad \x1b[31m"])
    ledger.line(kind="HELD", by="test", owner=99999, holders=["nobody's"])
    return ledger


# ---- growth that is reported

program().save("x.mst")
document = leaks("x.mst", status=1)
assert document["runs"] == {"ended": 20, "warm_up": 2, "young": 2, "uncollected": 0, "judged": 16}, document["runs"]
assert document["found"] == 2, document
[leak] = document["leaks"]
assert (leak["node"], leak["model"], leak["bytes_per_run"], leak["live_bytes"],
        leak["live_blocks"]) == ("Sampler", None, 4096, 81920, 20), leak
assert (leak["confidence"], leak["monotone"], leak["judged"], leak["grew"],
        leak["oldest_run"]) == ("high", True, 16, 16, "run 0"), leak
assert [frame["function"] for frame in leak["stack"]] == ["leaky", "main"], leak
[gone] = document["retired"]
assert (gone["name"], gone["origin"], gone["live_bytes"], gone["owners"],
        gone["leak"]) == ("UNET", "unet.st", 1 << 21, 1, True), gone
assert gone["holders"] == ["nodes.held[0]", 7, "bad \x1b[31m"], gone
assert gone["sites"][0]["stack"][0]["function"] == "load", gone
[kept] = document["kept"]
assert kept["model"] == "CLIP" and kept["bytes_per_run"] == 8192, kept
rest = {name: value["live_bytes"] for name, value in document["not_leaks"].items() if isinstance(value, dict)}
assert rest["one_off"] == 2**21 + 2**20 and rest["plateau"] == 175_000 and rest["small"] == 2000, rest
assert rest["kept"] == 8192 * 20 and not rest["young"], rest

# ---- in words

text = memstow("leaks", "x.mst", status=1).stdout
for words in ("20 runs have ended, 16 judged: 2 are warm-up, 2 may be in use", "2 leaks found", "model UNET (unet.st)",
              "held by nodes.held[0]", "+4.0 KiB    80.0 KiB   node Sampler (node 3)",
              'each of 16 runs; confidence high; since "run 0"', "py leaky  nodes.py:",
              "grow, in owners whose policy is keep"):
    assert words in text, (words, text)
assert "\x1b" not in text and text.index("UNET") < text.index("leaky") and max(map(len, text.split("\n"))) <= 80, text

# ---- options and exit codes

assert leaks("x.mst", "--min=5K", status=1)["leaks"] == [] and leaks("x.mst", "--min=50", status=1)["found"] == 3
assert "1 more (--top=N shows N)" not in text
assert memstow("leaks", "x.mst", "--top=0", status=1).stdout.count("… and 1 more") == 2
Runs(20).save("nothing.mst")
assert leaks("nothing.mst", status=0)["found"] == 0 and "No leak found\n" in memstow("leaks", "nothing.mst").stdout
text = memstow("leaks", "nothing.mst").stdout
assert leaks("nothing.mst", status=0)["ended_in_order"] and "The program has ended in order" in text, text
assert max(map(len, text.split("\n"))) <= 80, text
abrupt = Runs(20)
abrupt.header["state"] = _ledger.ABRUPT
abrupt.save("abrupt.mst")
assert not leaks("abrupt.mst", status=0)["ended_in_order"] and "in order" not in memstow("leaks", "abrupt.mst").stdout
program(8).save("few.mst")
few = leaks("few.mst", status=1)
assert few["leaks"] == [] and few["not_leaks"]["undecided"]["sites"] >= 2, few # the retired owner is found nevertheless
program(10).save("ten.mst")
[leak] = leaks("ten.mst", status=1)["leaks"]
assert (leak["judged"], leak["grew"], leak["confidence"]) == (6, 6, "low"), leak
assert "each of 6 runs; confidence low; since" in memstow("leaks", "ten.mst", status=1).stdout

# ---- no heading contradicts the verdict, or the text below it

retained = Ledger(state=_ledger.RUNNING, flags=_ledger.RESIDENCY, rss=64 * _ledger.MIB)
retained.count(retained.site(retained.module("/opt/program")), alloc=(40 << 20, 10), free=(39 << 20, 9))
retained.region(0x100000, 60 << 20, 60 << 20, "[heap]")
retained.save("retained.mst")
REST = "\nNot counted as leaks\n       live       sites\n"
text = memstow("leaks", "retained.mst", status=5).stdout
assert max(map(len, text.split("\n"))) <= 80, text
assert "no run has ended" in text and REST in text and "freed, and kept by the allocator" in text.split(REST)[1], text
for file, verdict in (("x.mst", "\n2 leaks found\n"), ("few.mst", "\n1 leak found\n"),
                      ("nothing.mst", "\nNo leak found\n")):
    text = memstow("leaks", file, status=None).stdout
    assert verdict in text and "No leaks" not in text and text.count(REST) == (file != "nothing.mst"), text
assert "too few runs, or too uneven, to tell" in memstow("leaks", "few.mst", status=1).stdout.split(REST)[1]

plain = Ledger()
plain.count(plain.site(plain.module("/opt/program")), alloc=(1 << 20, 1))
plain.save("plain.mst")
assert "Cannot tell: no run has ended in this process." in memstow("leaks", "plain.mst", status=5).stdout
for path, content in (("cut.mst", open("x.mst", "rb").read()[:9000]), ("text.mst", b"text"), ("empty.mst", b"")):
    open(path, "wb").write(content)
    done = memstow("leaks", path, status=3)
    assert done.stderr.startswith(f"memstow: {path}: ") and not done.stdout, done

# ---- runs that ended after Python's last garbage collection are not judged, because Python may still free their memory

ledger = program()
ledger.line(kind="COLLECTED", by="python")
for run in ledger.runs:
    ledger.ends(run, 10**12)
ledger.save("garbage.mst")
document = leaks("garbage.mst", status=1)
assert document["runs"]["uncollected"] == 20 and not document["leaks"], document["runs"]
assert "gc.collect()" in memstow("leaks", "garbage.mst", status=1).stdout
# No run is counted twice: judged runs (0) and left-out runs add up to all runs. The text does not advise to look again,
# because the program has ended.
for count, young in ((40, 36), (3, 1), (1, 0)):
    ledger = Runs(count)
    ledger.line(kind="COLLECTED", by="python")
    for run in ledger.runs:
        ledger.ends(run, 10**12)
    ledger.save("gone.mst")
    shown = memstow("leaks", "gone.mst", status=5).stdout
    warm_up = count - young
    runs, are = ("runs have", "are") if count > 1 else ("run has", "is")
    assert f"{count} {runs} ended, 0 judged: {warm_up} {are} warm-up, {young} may " in shown, shown
    assert "\nWhat to do: start it again, and ask while it runs.\n" in shown and "look again" not in shown, shown
    assert leaks("gone.mst", status=5)["advice"] == "start it again, and ask while it runs"

# ---- several snapshots of one process, without a run


def shot(number, held, pid=1000):
    ledger = Ledger(pid=pid, end_ns=(number + 2) * 10**9)
    ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(held, number))
    return ledger.save(f"shot{number}.mst")


shots = [shot(number, 100_000 * number) for number in range(1, 10)]
document = leaks(*shots, status=1)
assert document["leaks"][0]["bytes_per_run"] == 100_000, document["leaks"]
assert document["leaks"][0]["judged_by"] == "readings", document["leaks"]
assert document["readings"] == {"taken": 9, "warm_up": 2, "young": 0, "judged": 7}, document["readings"]
assert "a reading" in memstow("leaks", *shots, status=1).stdout
assert "Cannot tell: 3 readings were taken, but a verdict needs 7.\nWhat to do: take 4 more readings.\n" in memstow(
    "leaks", *shots[:3], status=5).stdout
assert leaks(*shots[:7], status=1)["verdict"] == "leak"
assert leaks(*shots[:6], status=5)["why"] == "6 readings were taken, but a verdict needs 7"
assert leaks(*[shot(number, 10**6) for number in range(1, 10)], status=0)["not_leaks"]["one_off"]["live_bytes"] == 10**6
assert "shot1.mst was taken earlier than the file before it" in memstow(
    "leaks", "shot2.mst", "shot1.mst", status=2).stderr
shot(3, 5, pid=1001)
assert "shot3.mst is of another process" in memstow("leaks", "shot2.mst", "shot3.mst", status=2).stderr

# ---- a ledger with a series is read alone, without other files; a series that does not add up is refused

SERIES = 40


def series(path, body):
    """Writes the ledger x.mst to `path`, and behind it a series whose readings are `body`."""
    whole = bytearray(open("x.mst", "rb").read())
    whole += struct.pack("<IHHQQQ", SERIES, 1, 1, 32 + -(-len(body) // 8) * 8, len(body),
                         0) + body + bytes(-len(body) % 8)
    struct.pack_into("<Q", whole, 24, len(whole))
    open(path, "wb").write(whole)


series("series.mst", b"\x00\x00")
assert leaks("series.mst", status=1)["leaks"] == leaks("x.mst")["leaks"]
for files in (("series.mst", "x.mst"), ("x.mst", "series.mst"), ("series.mst", "series.mst")):
    assert memstow("leaks", *files,
                   status=2).stderr.startswith("memstow: series.mst is a series, which is read alone: "), files
for body in (b"\xff" * 40, b"\x05\x01", b"\x01\x00\x00\x00\x00\x00\x7f",
             b"\x81\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"):
    series("series.mst", body)
    assert memstow("leaks", "series.mst",
                   status=3).stderr == "memstow: series.mst: damaged: a series that does not add up\n", body
