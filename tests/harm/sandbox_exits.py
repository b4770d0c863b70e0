# needs: cc
"""A program goes into a sandbox that kills a process when it asks for the id of a process or thread. The program goes
on and ends as without memstow, and its ledger says how it ended."""
import pathlib

import support

program = support.compile(pathlib.Path(__file__).with_name("sandbox_exits.c"),
                          flags=("-O1", "-g", "-pthread", "-w", "-fno-builtin"))
STATES = {"_exit": "abrupt_exit", "quick_exit": "abrupt_exit", "exec": "raw_exit"}
WAYS = ("return", "exit", "_exit", "quick_exit", "thread", "threads", "filter", "fork", "vfork", "failing exec", "exec")
for how in WAYS:
    alone = support.run(program, how, status=None)
    if alone.returncode == 77:
        support.skip("no sandbox here")
    assert alone.returncode == (1 if how == "exec" else 5), (how, alone)
    file = f"{how.replace(' ', '_')}.mst"
    tracked = support.track(program, how, status=None, file=file)
    assert tracked.returncode == alone.returncode, (how, tracked)
    process = support.report(file)["process"]
    assert process["state"] == STATES.get(how, "exited"), (how, process)
