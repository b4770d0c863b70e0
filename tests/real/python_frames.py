#!/usr/bin/env python3
# needs: cc deb:libunwind-dev
# timeout: 400
"""preload/stacks/python.c finds Python frames at any moment and without the GIL. The test asserts for each installed
Python that these are the frames that Python itself reports: the same functions, files, lines and instructions
(_python_frames.py). Then the test does all of this again in a process in which every seventh malloc also looks at the
frames, wherever it is called."""
import os, re

import support
from _pythons import HERE, VERSIONS, build_probe, pythons

found = pythons()
if not found:
    support.skip(f"no Python {' or '.join(VERSIONS)} here")
probe = build_probe()
os.environ["PYTHONWARNINGS"] = "ignore" # 3.12 warns of a fork while another thread is still ending
for python in found:
    done = support.run(python, HERE / "_python_frames.py", probe, timeout=120)
    print(f"{python}: {done.stdout.strip()}")
    assert re.fullmatch(r"[\d.]+\w*: \d{5,} chains, .*\n", done.stdout) and not done.stderr, done.stdout + done.stderr
    in_malloc = {**os.environ, "LD_PRELOAD": str(probe), "PROBE_EVERY": "7"}
    done = support.run(python, HERE / "_python_frames.py", probe, timeout=120, env=in_malloc)
    assert re.fullmatch(r"probe: \d{4,} looks, \d{5,} frames, 0 wrong, .*\n", done.stderr), done.stdout + done.stderr
print("not installed:", *(v for v in VERSIONS if v not in found.values()))
