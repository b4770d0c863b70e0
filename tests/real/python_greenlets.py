#!/usr/bin/env python3
# needs: cc deb:libunwind-dev pip:greenlet
"""In a greenlet memstow finds only the Python frames of this greenlet, although further out the native stack still has
parts of the stacks of other greenlets."""
import os

import support
from _pythons import HERE, VERSIONS, build_probe, version_of

if version_of(support.PYTHON) not in VERSIONS:
    support.skip(f"{support.PYTHON} is none of {' '.join(VERSIONS)}")
probe = build_probe()
for env in ({}, {"LD_PRELOAD": str(probe), "PROBE_EVERY": "3"}):
    done = support.run(support.PYTHON, HERE / "_python_greenlets.py", probe, env={**os.environ, **env})
    assert done.stdout.endswith(" looks\n") and ("0 wrong" in done.stderr) == bool(env), done.stdout + done.stderr
