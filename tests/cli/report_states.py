"""The head of a report says how the process ended."""
from _ledger import ABRUPT, EXECED, EXITED, RUNNING, FORK_CHILD, simple
from support import memstow, report

for state, words, key in ((EXITED, "exited", "exited"), (ABRUPT, "ended by _exit", "abrupt_exit"),
                          (RUNNING, "was killed (or left by a raw exit)", "killed"),
                          (EXECED, "replaced itself by another program (exec)", "execed"),
                          (99, "in an unknown state", "unknown")):
    simple(state=state).save("x.mst")
    head = memstow("report", "x.mst").stdout.split("\n")[0]
    assert head == f"program (pid 1000), {words}", head
    assert report("x.mst")["process"]["state"] == key
simple(flags=FORK_CHILD, parent_pid=99, inherited=2048).save("x.mst")
assert "forked     from process 99, with 2.0 KiB live" in memstow("report", "x.mst").stdout
