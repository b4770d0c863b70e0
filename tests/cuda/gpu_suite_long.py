#!/usr/bin/env python3
# long
# needs: pip:comfy-aimdo==0.6.0
# timeout: 1500
"""The parts of the GPU suite pass over the simulated driver, a test double, and show no times there. What they find out
about a driver is right, in each mode of the double. gpu_suite.py has the suite without a GPU."""
import os, pathlib, re, sys, time

import support
from _gpu_suite import DOUBLE, outcomes, suite


def limits_noted(environment):
    """An environment in which each Python program writes into the file "limits" how long its commands may take."""
    (support.HERE / "noted").mkdir()
    (support.HERE / "noted/sitecustomize.py").write_text("""import subprocess
run = subprocess.run
def noting(*words, **options):
    with open("PLACE", "a") as file:
        file.write(f"{options.get('timeout')}\\n")
    return run(*words, **options)
subprocess.run = noting
""".replace("PLACE", str(support.HERE / "limits")))
    return {**environment, "PYTHONPATH": f"{support.HERE / 'noted'}:{environment['PYTHONPATH']}"}


lines = suite("moves", "moves_pinned", "graphs", "rescue", "kept", "routes", "cupti", "speed", "comfyui", "lib_jax",
              "lib_aimdo", "facts", "costs", env=limits_noted(DOUBLE), python=os.path.relpath(sys.executable))
assert "Simulated device 0 (test double)" in lines[0] and lines[1].startswith("Python 3."), lines
assert "test double" in lines[2], lines
found = outcomes(lines)
has_rescue = b"MEMSTOW_CUDA_RESCUE" in support.LIBRARY.read_bytes()
assert found.pop("rescue") == ("passed" if has_rescue
                               else "skipped") and found.pop("lib_jax") == found.pop("comfyui") == "skipped", lines
assert set(found.values()) == {"passed"} and len(found) == 10, lines
limits = set((support.HERE / "limits").read_text().split())
assert limits == {"None"}, f"the runner limits a part, and nothing in it has a limit of its own: {limits}"
assert not re.search(r"\d (ns|GB/s)|figure us_", "\n".join(lines)), "times of a test double are not shown"

# Before something is measured, it runs for a second.
for what in ("pairs", "kernels"):
    began = time.monotonic()
    assert "over a test double" in support.run(support.BUILD / "tests/gpu/speed", what, env=DOUBLE).stdout
    assert time.monotonic() - began >= 1, what

# A program that is killed has already said what it knew.
with open("costs.txt", "w") as file:
    costs = support.start(support.BUILD / "tests/gpu/costs", stdout=file,
                          env={**DOUBLE, "SIMCUDA_LATENCY_US": "600000000"})
support.wait_for(lambda: "figure first_pinned_takes" in pathlib.Path("costs.txt").read_text(), 60, "a figure")
costs.kill()

# The part `costs` finds out which of a driver's calls wait for a kernel. The parts `moves` and `moves_pinned` pass even
# if a context's first stream takes memory (SIMCUDA_FIRST).
busy = {**DOUBLE, "SIMCUDA_LATENCY_US": "200000", "SIMCUDA_CAPACITY": "3G", "SIMCUDA_FILL": "0"}
waits = {mode: {word.split()[1]: word.split()[2] for word in suite("costs", env={**busy, **settings})
                if word.strip().startswith("figure waits_")}
         for mode, settings in {"free": {}, "drains": {"SIMCUDA_DRAINS": "1"}}.items()}
assert {name for name, is_so in waits["free"].items() if is_so == "1"} == {"waits_unpin_64", "waits_free_64"}, waits
assert {name for name in waits["free"] if waits["free"][name] != waits["drains"][name]} == {
    f"waits_{call}_{mib}" for call in ("unmap", "access") for mib in (2, 64, 1024)}, waits
assert outcomes(suite("moves", "moves_pinned", env={**DOUBLE, "SIMCUDA_FIRST": "6M"})) == dict.fromkeys(
    ("moves", "moves_pinned"), "passed")

# A stand-in for compute-sanitizer. It reports $FOUND errors. If that is 0, it runs the program first.
(support.HERE / "bin").mkdir()
sanitizer = support.HERE / "bin/compute-sanitizer"
sanitizer.write_text("""#!/bin/sh
while [ "${1#*/memstow}" = "$1" ]; do shift; done
[ "$FOUND" != 0 ] || "$@" || exit
echo "========= ERROR SUMMARY: $FOUND errors"
exit $((FOUND ? 99 : 0))
""")
sanitizer.chmod(0o755)
for errors, outcome in (("0", "passed"), ("3", "failed")):
    lines = suite("sanitizer", status=outcome == "failed", python=os.path.relpath(sys.executable),
                  env={**DOUBLE, "PATH": f"{support.HERE / 'bin'}:{os.environ['PATH']}", "FOUND": errors})
    assert outcomes(lines) == {"sanitizer": outcome}, lines
assert any("ERROR SUMMARY: 3 errors" in line for line in lines), lines
