"""An orphan leaks 150 KB/s, in a session of its own. watch names the orphan within 10 s, and shows the call stack that
grows, the system calls of the orphan's threads, and its socket, file and shared memory. --end ends the orphan. The exit
code is that of the program."""
import re

from _ends import faults, pids, watch
from support import is_gone

text, _ = watch(faults(), "exit=7", "leak", "stuck", "endless", "socket", "handle", "shared", grace="11s",
                options=("--end", "--strict"), status=7)
first = text.split("memstow: ")[1]
after, left = re.match(r"(\S+) s after faults ended, (\d+) process", first).groups()
assert left == "1" and float(after) < 10, text
grows = float(re.search(r"old, grows by (\S+) KiB/s", first)[1])
live = float(re.search(r"its live memory grows by (\S+) KiB/s", first)[1])
assert 75 < grows < 200 and 75 < live < 200, text # 150 on a quiet machine
assert "leak_some" in first and "linger" in first, text
assert "(orphan: the process that started it has ended): " in first, text  # it ended before watch could see it
assert re.search(r"\d+ stuck, since \S+ s: in futex", first), text
assert re.search(r"\d+ endless, since \S+ s: runs, \S+ s of processor time", first), text
assert re.search(r"1 socket\n +descriptor \d+: tcp 127.0.0.1:\d+, listens", first), text
assert re.search(r"1 open file\n +descriptor \d+: \S*/held.txt", first), text
assert re.search(r"1 piece of shared memory\n +mapped: /dev/shm/memstow-ends-\d+", first), text
assert "ended on SIGTERM" in text, text
assert is_gone(pids(first)[0])
# things that outlive it are named, too
assert re.search(r"left behind in the system:\n  shared memory /dev/shm/memstow-ends-\d+, 1.0 MiB, of faults",
                 text), text
import pathlib
pathlib.Path(re.search(r"/dev/shm/memstow-ends-\d+", text)[0]).unlink()
