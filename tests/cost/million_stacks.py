#!/usr/bin/env python3
# alone
# timeout: 300
"""A ledger of a million sites with call stacks of some ninety frames. A report and a diff by site take at most 200 MB
each. The test prints the seconds; the goal of one second each is not tested."""
import os, subprocess, time

import support

for seed in (1, 2):
    support.run(support.BUILD / "tests/cost/deep", f"{seed}.mst", 1_000_000, seed)


def measured(*argv):
    """(seconds, peak bytes) of a memstow command."""
    start = time.monotonic()
    command = subprocess.Popen([support.MEMSTOW, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(command.pid, 0)
    assert status == 0, argv
    return time.monotonic() - start, usage.ru_maxrss * 1024


took = {name: measured(*name.split()) for name in (
    "report 1.mst", "report 1.mst --by=module", "report 1.mst --churn --top=100", "report 1.mst --json --top=1000",
    "diff 1.mst 2.mst --by=site")}
for name, (seconds, peak) in took.items():
    print(f"{name:32} {seconds:6.2f} s  {peak / 1e6:6.1f} MB")
if not support.features()["sanitize"]: # a sanitizer has memory of its own
    assert all(peak <= 200e6 for _, peak in took.values()), took

lines = support.memstow("report", "1.mst").stdout
assert "1,000,000" in lines and "Call tree" in lines and max(map(len, lines.split("\n"))) <= 80, lines
