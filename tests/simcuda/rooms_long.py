#!/usr/bin/env python3
# long
# timeout: 7200
# needs: cc pip:comfy-aimdo==0.6.0
"""Runs the tests of CUDA over the simulated driver (a test double) in each mode of that driver (simcuda.h): the driver
is slow, waits, takes more memory, or has memory in pieces. modes_long.py does the same with the cases of moving."""
import os, re, sys

import support, _modes

# These tests are left out. Some need their own driver or their own settings of the driver. The others do not show what
# memstow does with memory.
APART = {"cuda/checked", "cuda/fakes", "cuda/bad_days", "cuda/traps", "cuda/gpu_suite", "simcuda/modes",
         "simcuda/moves"}
# Cases that rely on something that a mode does not give.
EXACT = "devices:each_to_its_own devices:stream_of_another devices:figures" # exact sums around a first pinned buffer
FULL = "rescue:in_order rescue:threads" # requests that fill a device to the last byte
DRAINED = "spares:other_streams spares:behind" # memory is mapped while the device is held: mapping waits for that
HASHED = "rescue:behind_a_long_move rescue:used_again" # a device that is held computes no hash: the blocks stay
LEFT_OUT = {"first": f"{EXACT} {FULL}", "pieces": f"rescue:probe spares:free_memory {FULL}", "drains": DRAINED,
            "keeps": HASHED}

# This test would not end within its own limit, because each of its many operations takes the mode's latency.
TOO_LONG = {"drains": {"cuda/cupti"}}


def names():
    found = support.run(sys.executable, support.ROOT / "tests/runner.py", "--list", "cuda", "simcuda").stdout.split()
    there = [name for name in found if re.fullmatch(r"(cuda|simcuda)/\w+", name) and not name.endswith("_long")]
    assert len(there) > 25 and APART <= set(there), there
    return sorted(set(there) - APART)


tests = names()
for mode, settings in _modes.MODES.items():
    chosen = sorted(set(tests) - TOO_LONG.get(mode, set()))
    said = support.run(sys.executable, support.ROOT / "tests/runner.py", "--build", support.BUILD, "--jobs", "2",
                       *chosen, env={**os.environ, **settings, "SIMCUDA_LEFT_OUT": LEFT_OUT.get(mode, "")},
                       status=None, timeout=1700)
    assert said.returncode == 0, f"{mode}:\n{said.stdout[-8000:]}{said.stderr[-2000:]}"
    print(f"{mode}: {said.stdout.splitlines()[-1]}")
