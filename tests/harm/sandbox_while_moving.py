#!/usr/bin/env python3
# needs: cc
"""A program goes into a sandbox while memstow moves memory and the disk hangs. If the sandbox is only for the thread
that enters it, the program does not wait for the disk. If the sandbox is for all threads, it begins after the move has
ended. Nobody is killed. The client that requested the move learns why it did not happen."""
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
        support.expect_exit(process, 77, seconds=10)
        support.skip("no sandbox here")
    asking = support.start(support.MEMSTOW, "stow", pid.strip(), "owner", stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "inside\n", how
    support.expect_exit(process, 5, seconds=60)
    support.expect_exit(asking, 1)
    said = asking.stderr.read()
    assert said == "memstow: custom 1 'owner': not stowed: the process ends, or goes into a sandbox\n", (how, said)
