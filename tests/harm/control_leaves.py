"""The control thread ends before the program's main thread leaves. Otherwise, the process would live on after the
program's last thread has ended. The control thread also ends before the process goes into a sandbox that kills a thread
that listens to a socket."""
import os, pathlib

import support

program = support.compile(pathlib.Path(__file__).with_name("control_leaves.c"), flags=("-O1", "-g", "-pthread", "-w"))
runtime = pathlib.Path("run").resolve()
runtime.mkdir(mode=0o700)
for way in ("return", "pthread_exit", "thrd_exit", "sandbox"):
    alone = support.run(program, way, status=None, timeout=60)
    if alone.returncode == 77:
        support.skip("no sandbox here")
    assert alone.returncode == 0 and ("1 thread" if way == "sandbox" else "last thread ends") in alone.stdout, alone
    tracked = support.track(program, way, timeout=60, env={**os.environ, "XDG_RUNTIME_DIR": str(runtime)})
    assert tracked.stdout == alone.stdout, (way, tracked)
    assert support.report()["process"]["state"] == "exited", way
    assert os.listdir(runtime / "memstow") == [], way
