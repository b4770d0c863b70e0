#!/usr/bin/env python3
# needs: cc
"""A program goes into a sandbox while memstow moves memory and the disk hangs. If the sandbox is for its own thread, it
does not wait for the disk. If it is for all threads, the move has ended before. Nobody is killed."""
import os, pathlib, subprocess

import support

program = support.compile(pathlib.Path(__file__).with_name("sandbox_while_moving.c"),
                          flags=("-O1", "-g", "-pthread", "-w", "-ldl", "-fno-builtin"))
env = {**os.environ, "MEMSTOW_STOW_DIR": "/var/tmp"}
for how in ("prctl", "seccomp", "syscall", "all threads", "both"):
    process = support.start(support.MEMSTOW, "run", "--quiet", "-o", "out.mst", "--", program, how, env=env,
                            stdout=subprocess.PIPE, text=True)
    pid = process.stdout.readline()
    if not pid:
        assert process.wait(10) == 77, how
        support.skip("no sandbox here")
    asking = support.start(support.MEMSTOW, "stow", pid.strip(), "owner", stderr=subprocess.DEVNULL)
    assert process.stdout.readline() == "inside\n", how
    assert process.wait(60) == 5, how
    asking.wait(60)
