"""Shared by outside_reader_folding.py and outside_reader_folding_long.py."""
import os, pathlib, struct, subprocess, time

import support

if support.features()["sanitize"] == "thread":
    support.skip("a command with ThreadSanitizer reads so slowly that the readings take more than 400 s")
THREADS = 2
BEFORE_MAIN = 100 # at most so many blocks are allocated by other code, such as the loader


def read(readings):
    program = support.compile(pathlib.Path(__file__).with_name("folding.c"), flags=("-O1", "-g", "-pthread", "-w",
                                                                                  "-fno-builtin-malloc"))
    told = support.HERE / "told"
    run = support.start(support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", program, THREADS, told,
                        stdout=subprocess.PIPE, text=True, env={**os.environ, "MEMSTOW_STACK_MEMORY": "12000000"})
    assert run.stdout.readline() == "begun\n"
    pid = int(pathlib.Path(f"/proc/{run.pid}/task/{run.pid}/children").read_text().split()[0])
    time.sleep(3)
    wrong, inexact, folded = [], 0, []
    for number in range(readings):
        before = struct.unpack("2Q", told.read_bytes())
        if number % 4 == 3:
            support.memstow("snapshot", pid, "-o", "snap.mst")
            report = support.report("snap.mst")
        else:
            report = support.report(pid)
        after = struct.unpack("2Q", told.read_bytes())
        folded.append(report["lost"]["folded"])
        if not all(s["exact"] for s in report["sites"]):
            inexact += 1
            continue
        allocated = report["totals"]["allocated_blocks"]
        kept = sum(s["live_bytes"] for s in report["sites"] if any(f.get("function") == "keep" for f in s["stack"]))
        if not before[0] <= allocated <= after[0] + BEFORE_MAIN:
            wrong.append(f"reading {number}: {allocated} blocks allocated, not {before[0]} to {after[0]}")
        if not before[1] <= kept <= after[1] + THREADS * 10000:
            wrong.append(f"reading {number}: {kept} bytes kept, not {before[1]} to {after[1]}")
    run.kill()
    print(f"{folded[-1] - folded[0]} stacks made room meanwhile; {inexact} of {readings} readings hold an inexact site")
    assert not wrong, "\n".join(wrong)
    assert folded[-1] - folded[0] > 10_000, folded
    if not support.features()["sanitize"]: # a command with sanitizers reads so slowly that stacks move in most readings
        assert inexact <= readings / 4, "many readings are inexact"
