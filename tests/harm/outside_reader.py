# timeout: 400
"""A report or snapshot of a running program, taken from outside, is wrong by no more than the operations in flight. The
counters of the program grow fast, but its total of live bytes stays the same, except for one block a thread. If the
counters of a site changed while they were read, the site is marked as inexact. Blocks that were freed during the
reading are missing."""
import pathlib, subprocess, time

import support

THREADS = 3
READINGS = 40
FREED_MEANWHILE = 4 << 20
program = support.compile(pathlib.Path(__file__).with_name("steady.c"), flags=("-O1", "-g", "-pthread", "-w",
                                                                             "-fno-builtin-malloc"))
run = support.start(support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", program, THREADS, 1000,
                    stdout=subprocess.PIPE, text=True)
base, span, mapped, mapped_span = map(int, run.stdout.readline().split()[1:])
pid = int(pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()[0])
wrong, inexact, allocated = [], 0, []
for number in range(READINGS):
    if number % 4 == 3:
        support.memstow("snapshot", pid, "-o", "snap.mst")
        report = support.report("snap.mst")
    else:
        report = support.report(pid)
    assert report["process"]["state"] == "running", report["process"]
    total = report["totals"]["mapped"]["live_bytes"]
    heap = sum(m["live_bytes"] for m in report["modules"] if m["module"] == str(program)) - total
    exact = all(s["exact"] for s in report["sites"])
    missing = 0 if exact else FREED_MEANWHILE
    inexact += not exact
    allocated.append(report["totals"]["allocated_bytes"])
    if not base - missing <= heap <= base + span:
        wrong.append(
            f"reading {number}: heap {heap - base:+} of {base}, {span} may be in flight{'' if exact else '; inexact'}")
    if not mapped - mapped_span <= total <= mapped:
        wrong.append(f"reading {number}: mapped {total - mapped:+} of {mapped}, {mapped_span} may be in flight")
    time.sleep(0.02)
run.kill()
print(
    f"{allocated[-1] - allocated[0]} bytes allocated meanwhile; {inexact} of {READINGS} readings hold an inexact site")
assert not wrong, "\n".join(wrong)
assert inexact <= READINGS / 2, "most readings are inexact"
