# needs: cc pip:perfetto==0.59.1 pip:protobuf==7.36.2
"""--perfetto writes a trace in Perfetto's published schema. The test reads the trace with Perfetto's own package. The
trace has counters of memory, owners and devices. It has slices for runs, nodes and models, which never overlap on a
track. It also has triggers, decisions and marks. Several snapshots of a process become one trace. Names from a file
never break the trace."""
import collections, os, pty, subprocess, sys

import _hostile
from _ledger import MIB, Ledger
from support import MEMSTOW, ROOT, memstow, report, skip

sys.path.insert(0, str(ROOT / "tests/html"))
import _devices # noqa: E402

try:
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as perfetto
except ImportError:
    skip("needs the perfetto package")

S = 10**9


class Trace:
    """counters: {path of names: [(ns, bytes)…]}; slices: {path: [(begin, end, name, notes)…]}, in order of time, and
    none overlaps another on its track; instants: {path: [(ns, name, notes)…]}"""

    def __init__(self, *arguments):
        done = subprocess.run([MEMSTOW, "report", "--perfetto", *arguments], capture_output=True, check=True)
        self.said, self.size = done.stderr.decode(), len(done.stdout)
        trace = perfetto.Trace()
        assert trace.ParseFromString(done.stdout) == len(done.stdout)
        tracks, self.counters = {}, collections.defaultdict(list)
        for packet in trace.packet:
            assert packet.trusted_packet_sequence_id, packet
            if packet.HasField("track_descriptor"):
                tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        self.tracks = tracks
        self.slices, self.instants, self.lanes = (collections.defaultdict(list) for _ in range(3))
        events = sorted((packet for packet in trace.packet if packet.HasField("track_event")),
                        key=lambda packet: packet.timestamp)
        open_slices = {}
        for packet in events:
            event = packet.track_event
            path, at = self.path(event.track_uuid), packet.timestamp
            notes = {one.name: one.string_value if one.HasField("string_value") else one.uint_value
                     for one in event.debug_annotations}
            if event.type == event.TYPE_COUNTER:
                assert tracks[event.track_uuid].HasField("counter") and event.HasField("counter_value")
                self.counters[path].append((at, event.counter_value))
            elif event.type == event.TYPE_SLICE_BEGIN:
                assert event.track_uuid not in open_slices, event
                open_slices[event.track_uuid] = at, event.name, notes
                self.lanes[path].append(event.track_uuid)
            elif event.type == event.TYPE_SLICE_END:
                begin, name, notes = open_slices.pop(event.track_uuid)
                self.slices[path].append((begin, at, name, notes))
            else:
                assert event.type == event.TYPE_INSTANT, event
                self.instants[path].append((at, event.name, notes))
        assert not open_slices, open_slices

    def path(self, uuid):
        one = self.tracks[uuid]
        if one.HasField("process"):
            return one.process.process_name
        return f"{self.path(one.parent_uuid)}/{one.name}"


def made(end=9, live=700):
    ledger = Ledger(end_ns=end * S, total_peak=5000, host_peak=5000, pid=4711)
    unet = ledger.owner(1, "UNET", "a.st", policy=2, begin_ns=2 * S)
    node = ledger.owner(2, "Sampler", "node 3", begin_ns=3 * S, end_ns=6 * S, retired=1)
    ledger.owner(2, "Loader", "node 1", begin_ns=4 * S, end_ns=5 * S, retired=1)
    runs = [ledger.owner(3, f"run {n}", begin_ns=n * S, end_ns=(n + 1) * S, retired=1, outcome=n == 4)
            for n in (3, 4, 5)]
    ledger.count(ledger.site(0, ledger.tag(unet, node, runs[2]), stack=ledger.node([ledger.python("f", "/a.py", 1)])),
                 alloc=(live, 7))
    for line in (dict(kind="TRIGGER", trigger=1, reason="run_ended", text="prompt 7", owners=1, before_bytes=900,
                      began_ns=2 * S + 5),
                 dict(kind="DECISION", trigger=1, owner=unet, policy="stow", action="stow", why="policy", bytes=900),
                 dict(kind="CATEGORY", trigger=1, owner=unet, category="stowed", before_bytes=900, after_bytes=800,
                      stowed_bytes=100),
                 dict(kind="ACT", trigger=1, kept=0, stowed=1, freed=0, blocked=0, models_before=1, models_after=1,
                      before_bytes=900, after_bytes=800)):
        ledger.line(**line)
    return ledger


made().save("x.mst")
trace = Trace("x.mst")
assert trace.said == "" and trace.tracks[1].process.pid == 4711
assert trace.counters["program/live bytes"] == [(1 * S, 0), (9 * S, 5000), (9 * S, 700)], trace.counters
owner = "program/owners/model:UNET (a.st)"
assert trace.counters[owner] == [(2 * S, 0), (3 * S, 900), (4 * S, 800), (9 * S, 700)], trace.counters[owner]
assert trace.counters["program/owners/node:Sampler (node 3)"] == [(3 * S, 0), (9 * S, 700)]
assert "program/owners/run:run 5" in trace.counters and "program/owners/run:run 3" not in trace.counters
bytes_unit = perfetto.CounterDescriptor.UNIT_SIZE_BYTES
assert all(one.counter.unit == bytes_unit for one in trace.tracks.values() if one.HasField("counter"))
runs = trace.slices["program/runs"]
assert [one[:3] for one in runs] == [(n * S, (n + 1) * S, f"run:run {n}") for n in (3, 4, 5)], runs
assert [one[3]["outcome"] for one in runs] == ["ok", "failed", "ok"] and len(set(trace.lanes["program/runs"])) == 1
assert sorted(one[:3] for one in trace.slices["program/nodes"]) == [
    (3 * S, 6 * S, "node:Sampler (node 3)"), (4 * S, 5 * S, "node:Loader (node 1)")], trace.slices
assert len(set(trace.lanes["program/nodes"])) == 2 # they overlap
assert trace.slices["program/models"] == [(2 * S, 9 * S, "model:UNET (a.st)",
                                           {"owner": 1, "state": "live", "policy": "stow"})], trace.slices
assert trace.slices["program/triggers"] == [
    (2 * S + 5, 5 * S, "run_ended", {"text": "prompt 7", "owners": 1, "before_bytes": 900, "after_bytes": 800,
                                     "finished": "yes"})], trace.slices["program/triggers"]
NOTES = {"policy": "stow", "why": "policy", "bytes": 900, "device_bytes": 0}
assert trace.instants["program/decisions"] == [(3 * S, "stow model:UNET (a.st)", NOTES)], trace.instants
marks = {name: (at, notes) for at, name, notes in trace.instants["program/marks"]}
assert marks == {"memstow begins": (1 * S, {}), "peak": (9 * S, {"bytes": 5000}), "exited": (9 * S, {})}, marks

# The trace of a killed program ends with the last event that is known of the program.
made(end=0).save("killed.mst")
killed = Trace("killed.mst")
assert [one[:3] for one in killed.slices["program/runs"]] == [one[:3] for one in runs], killed.slices
assert killed.slices["program/triggers"] == trace.slices["program/triggers"], killed.slices
assert killed.counters["program/live bytes"][-1] == (6 * S, 700), killed.counters["program/live bytes"]

# Memory over time: points of the history are values of the counters, and its marks are instants.
history = made()
for ns, host, mapped in ((2 * S, 1000, 10), (4 * S, 5000, 0), (5 * S, 2000, 20)):
    history.point(ns, host, mapped)
history.mark(2 * S, 3, 1)
history.mark(3 * S, 1, 5, rss=12345)
history.mark(4 * S, 11, 0, 3, moved=777)
history.mark(5 * S, 2, 5, 1)
history.mark(6 * S, 5, 0, 1) # not among the marks: triggers and their outcomes have tracks of their own
history.mark(6 * S, 6, 1)
history.owner_mark(5 * S, 1, 600, 50)
history.owner_mark(3 * S + 1, 1, 850)
history.owner_mark(5 * S, 99, 1)
history.save("history.mst")
trace = Trace("history.mst")
live = [(1 * S, 0), (2 * S, 1010), (4 * S, 5000), (5 * S, 2020), (9 * S, 5000), (9 * S, 700), (9 * S, 700)]
assert sorted(trace.counters["program/live bytes"]) == sorted(live), trace.counters["program/live bytes"]
assert trace.counters["program/live bytes"][-1] == (9 * S, 700), trace.counters["program/live bytes"]
assert trace.counters["program/live bytes of the heap"][:3] == [(2 * S, 1000), (4 * S, 5000), (5 * S, 2000)]
assert trace.counters["program/live bytes of mappings"][:3] == [(2 * S, 10), (4 * S, 0), (5 * S, 20)]
assert trace.counters["program/resident bytes (RSS)"] == [(3 * S, 12345)], trace.counters
assert (3 * S + 1, 850) in trace.counters[owner] and (5 * S, 600) in trace.counters[owner], trace.counters[owner]
assert trace.counters[owner + " on CUDA devices"] == [(2 * S, 0), (3 * S, 0), (3 * S + 1, 0), (4 * S, 0), (5 * S, 50),
                                                      (9 * S, 0)], trace.counters
marks = [one for one in trace.instants["program/marks"] if one[1] not in ("memstow begins", "peak", "exited")]
assert marks == [(2 * S, "UNET (a.st) came", {"owner": 1}), (3 * S, "run run 4", {"owner": 5}),
                 (4 * S, "out of memory", {"bytes": 777, "device": 3}),
                 (5 * S, "run run 4 ended", {"owner": 5, "detail": "failed"})], marks

# Each CUDA device has a counter. The program runs over a simulated driver, a test double.
_devices.record("devices.mst")
curves = {one["device"]: one for one in report("devices.mst")["history"]["devices"]}
trace = Trace("devices.mst")
process = next(path for path in trace.counters).split("/")[0]
for number in (0, 1):
    counted = [size for _, size in trace.counters[f"{process}/CUDA device {number}: live bytes"]]
    assert max(counted) == max(curves[number]["bytes"]) and counted[-1] == (40, 20)[number] * MIB, (number, counted)
    assert counted[0] < counted[-1] and len(counted) > 10, counted
    assert f"{process}/CUDA device {number}: in use, by the driver" in trace.counters

# --top: only the owners that hold most have counters. A line says how many have none.
trace = Trace("x.mst", "--top=1")
assert sum(path.startswith("program/owners/") for path in trace.counters) == 1
assert trace.said == "memstow: 3 owners that hold least have no counter (--top=N: N have one)\n", trace.said
assert Trace("x.mst", "--top=3").said == "memstow: 1 owner that holds least has no counter (--top=N: N have one)\n"

# The trace of several snapshots has the counters of all snapshots, but each slice only once.
made(end=5, live=400).save("early.mst")
trace = Trace("early.mst", "x.mst")
assert [one for one in trace.counters["program/live bytes"] if one[1] not in (0, 5000)] == [(5 * S, 400), (9 * S, 700)]
assert len(trace.slices["program/runs"]) == 3 and len(trace.slices["program/triggers"]) == 1
refused = subprocess.run([MEMSTOW, "report", "--perfetto", "x.mst", "early.mst"], capture_output=True)
assert refused.returncode == 2 and b"early.mst was taken earlier than the file before it" in refused.stderr

# Owners that live at the same time have a lane each, up to a limit.
crowd = Ledger()
for n in range(300):
    crowd.owner(2, f"node {n}", begin_ns=S + n, end_ns=2 * S, retired=1)
crowd.save("crowd.mst")
trace = Trace("crowd.mst")
assert len(set(trace.lanes["program/nodes"])) == 256 and "44 owners have no slice" in trace.said, trace.said

# Hostile names, and impossible times.
sizes = _hostile.save("hostile.mst")
trace = Trace("hostile.mst")
assert sum(trace.counters[path][-1][1] for path in trace.counters if "/owners/" in path) == sum(sizes.values())
assert trace.size < 200_000, trace.size
wild = Ledger()
wild.owner(1, "a", begin_ns=2**64 - 1, end_ns=1, retired=1)
wild.owner(3, "b", begin_ns=1, end_ns=2**64 - 1, retired=1)
wild.line(kind="TRIGGER", trigger=1, reason="run_ended", owners=2**64 - 1, began_ns=2**64 - 1)
wild.line(kind="DECISION", trigger=1, owner=2**32 + 1, action="free", bytes=2**64 - 1)
wild.save("wild.mst")
trace = Trace("wild.mst")
times = [at for points in trace.counters.values() for at, _ in points] + [
    at for slices in trace.slices.values() for one in slices for at in one[:2]]
assert min(times) == S and max(times) == 3 * S and trace.instants["program/decisions"][0][1].endswith("(unknown owner)")

# A binary file does not go to a terminal.
main, terminal = pty.openpty()
refused = subprocess.run([MEMSTOW, "report", "x.mst", "--perfetto"], stdout=terminal, stderr=subprocess.PIPE)
os.close(terminal)
assert refused.returncode == 2 and b"--perfetto writes a binary file" in refused.stderr
for option, said in (("--by=model", "--by does not go with --perfetto"), ("--min=1", "--min goes with"),
                     ("--match=x", "--match does not go with --perfetto"), ("--python", "--python goes with"),
                     ("--peak", "no other measure"), ("--churn", "no other measure"), ("--csv", "exclude each other")):
    assert said in memstow("report", "x.mst", "--perfetto", option, status=2).stderr, option
