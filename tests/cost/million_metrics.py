#!/usr/bin/env python3
# alone
# needs: cc stacks
# timeout: 300
"""`memstow metrics` gives Prometheus the figures of a running program with a million call stacks. Without --leaks the
command does not read the call stacks, so it takes little more memory than the counters. With --leaks it reads the whole
ledger. The test prints the seconds, but does not test them."""
import os, subprocess

import support

STACKS = 1_000_000
program = support.compile(support.ROOT / "tests/cost/paths.c", flags=("-O1", "-g"))
options = ("--quiet", "-o", "out.mst", "--stack-memory=256M")
command = support.start(support.MEMSTOW, "run", *options, "--", program, STACKS, 1, "wait", stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, text=True)
assert command.stdout.readline() == "ready\n"
pid = support.report("out.mst", "--top=1")["process"]["pid"]


def measured(*options):
    """(the samples, peak bytes) of memstow metrics."""
    with open("samples", "w+") as out:
        metrics = subprocess.Popen([support.MEMSTOW, "metrics", str(pid), *options], stdout=out)
        _, status, usage = os.wait4(metrics.pid, 0)
        assert status == 0
        out.seek(0)
        lines = [line.rpartition(" ") for line in out if line.startswith("memstow_")]
    print(f"metrics {' '.join(options):10} {usage.ru_utime + usage.ru_stime:.2f} s of processor, "
          f"{usage.ru_maxrss / 1024:.0f} MB of memory")
    return {name: float(number) for name, _, number in lines}, usage.ru_maxrss * 1024


figures, memory = measured()
whole, most = measured("--leaks")
live = {name: number for name, number in figures.items() if name.startswith("memstow_live_")}
assert live == {name: number for name, number in whole.items() if name.startswith("memstow_live_")}, (figures, whole)
assert sum(number for name, number in live.items() if "blocks" in name and "heap" in name) >= STACKS, live
if not support.features()["sanitize"]: # a sanitizer has memory of its own
    assert memory < 0.6 * most and memory < 120e6, (memory, most)
command.communicate("\n", timeout=60)
