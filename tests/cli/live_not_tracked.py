"""A PID that is not tracked gives one line with the reason, and exit code 3."""
import os
from support import memstow, start

sleeper = start("sleep", "60")
pid = str(sleeper.pid)
message = f"memstow: process {pid} is not tracked by memstow: libmemstow.so is not loaded in it (see 'memstow ps')\n"
assert memstow("report", pid, status=3).stderr == message
assert memstow("snapshot", pid, status=3).stderr == message
sleeper.kill()
sleeper.wait()
for words in (("report", pid), ("snapshot", pid), ("diff", pid, pid)):
    assert memstow(*words, status=3).stderr == f"memstow: no such process: {pid}\n"
assert not os.listdir()
