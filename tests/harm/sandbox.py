"""A program that forbids system calls to itself lives as long as without us, whichever way it went into its sandbox."""
import pathlib, shutil

import support

program = support.compile(pathlib.Path(__file__).with_name("sandbox.c"), flags=("-O1", "-g", "-pthread", "-w", "-ldl",
                                                                                "-fno-builtin"))
module = support.compile(
    "#include <stdlib.h>\nvoid *allocate(size_t size) { return malloc(size) ? malloc(size) : 0; }\n", "module.so",
    flags=("-O1", "-shared", "-fPIC"))
modules = [shutil.copy(module, f"module{i}.so") for i in range(30)]
modules = [str(pathlib.Path(m).resolve()) for m in modules]
for how in ("strict", "prctl", "seccomp", "syscall"):
    alone = support.run(program, how, *modules, status=None)
    if alone.returncode == 77:
        support.skip(f"no sandbox here: {how}")
    assert alone.returncode == 5, alone
    tracked = support.track(program, how, *modules, status=None, file=f"{how}.mst")
    assert (tracked.returncode, tracked.stdout) == (5, alone.stdout), f"{how}: {tracked}"
    report = support.report(f"{how}.mst")
    if how != "strict":
        assert report["totals"]["host"]["live_bytes"] >= 2000 * 70000, how
        assert report["process"]["state"] == "exited", how
