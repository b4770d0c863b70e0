#!/usr/bin/env python3
# timeout: 1200
# The CUDA hooks and the simulated driver, a test double, under the sanitizers of this build (tests/check --preset
# asan-ubsan, --preset tsan): every line of the table, events that no route leads to, random use by four threads with
# errors, memory that moves, and memory that is pinned ahead of need. The library is linked, not preloaded. It has no
# hooks of malloc, mmap, fork and dlsym, because a sanitizer has its own. So memory that moves together with host memory
# is not tested here, and neither are call stacks, because they read memory that a sanitizer guards.
import os, sys, pathlib

import support, _simulated

sys.path[:0] = [str(support.ROOT / "tests" / room) for room in ("stow", "simcuda")]
import _moving, _simcuda

if not support.features()["sanitize"]:
    support.skip("this build has no sanitizers: --preset asan-ubsan, --preset tsan")

FOLDER = _simulated.BUILT / "checked"


def run(program, *arguments, status=0, **more):
    """Runs a program and returns its output. Its ledger is out.mst."""
    pathlib.Path("out.mst").unlink(missing_ok=True)
    # detect_leaks=0: libmemstow and the driver stay loaded until the end, so memory that they still have is no leak.
    # report_thread_leaks=0: this libmemstow has no hook of exit, so nothing joins its threads at exit.
    environment = dict(os.environ, MEMSTOW_OUT=str(support.HERE / "out.mst"), MEMSTOW_STACKS="none",
                       ASAN_OPTIONS="detect_leaks=0", TSAN_OPTIONS="report_thread_leaks=0", **more)
    done = support.run(FOLDER / program, *arguments, env=environment, status=None, timeout=600)
    assert done.returncode == status, (f"{program} {arguments}: exit status "
                                       f"{done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def meets(output, name):
    # without the hook of exit, the ledger looks like that of a killed program, whose blocks have no age
    lines = [line for line in output.split("\n") if line.startswith("expect") and "age_seconds" not in line]
    wrong = _simulated.wrong(lines, "out.mst")
    assert lines and not wrong, f"{name}:\n" + "\n".join(wrong)


run("every_line", "linked", SIMCUDA_FILL="0", SIMCUDA_CAPACITY="32G", SIMCUDA_DEVICES="16", SIMCUDA_MULTICAST="1")
for case in set(run("entries").split()) - {"unknown"}: # that case asks dlsym
    meets(run("entries", case, SIMCUDA_DEVICES="3"), case)
meets(run("random_use", "1", "1000", SIMCUDA_FILL="0", SIMCUDA_CAPACITY="2G"), "random_use")

folder = _moving.real_disk()
cases = [(program, case) for program in ("moves", "contexts") for case in run(program).split() if case != "asked"]
assert len(cases) > 20
for program, case in cases:
    run(program, case, status=-9 if case.startswith("killed") else 0, **_simcuda.settings(case, folder))
for case in set(run("ahead").split()) - {"little_left"}: # that case needs a control group
    run("ahead", case, **_simcuda.ahead_settings(case))
assert not list(folder.iterdir())
folder.rmdir()
