#!/usr/bin/env python3
"""With -X perf CPython makes a piece of code for each Python function, and writes its name for perf. The report uses
this name, while the program runs and afterwards."""
import atexit, pathlib, subprocess

import support
from _pythons import pythons

PROGRAM = """\
import os, sys
def plant():
    return bytearray(70001)
held = plant()
print(os.getpid(), flush=True)
sys.stdin.read()
os._exit(0)
"""


def names(subject):
    site = next(site for site in support.report(subject)["sites"] if site["live_bytes"] == 70002) # with its NUL
    return [frame["function"] for frame in site["stack"]]


found = {python: version for python, version in pythons().items() if version != "3.11"}
if not found:
    support.skip("no Python 3.12 or later here")
for python, version in found.items():
    process = support.start(support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", python, "-S", "-X", "perf", "-c",
                            PROGRAM, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    pid = int(process.stdout.readline())
    atexit.register(pathlib.Path(f"/tmp/perf-{pid}.map").unlink, missing_ok=True)
    running = names(pid)
    process.stdin.close()
    support.expect_exit(process, seconds=20)
    for chain in (running, names("out.mst")):
        assert chain.index("plant") + 1 == chain.index("py::plant:<string>"), (version, chain)
