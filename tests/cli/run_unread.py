"""If nobody reads what run or watch writes, they still exit with the program's exit code. `watch --end` still ends the
processes that the program left behind. If the program itself writes to a pipe that nobody reads, SIGPIPE kills it, as
without memstow."""
import os, subprocess

from support import MEMSTOW


def without_reader(*words, stream="stderr"):
    reader, writer = os.pipe()
    os.close(reader)
    other = {"stderr": "stdout", "stdout": "stderr"}[stream]
    done = subprocess.run([MEMSTOW, *words], timeout=60, **{stream: writer, other: subprocess.DEVNULL})
    os.close(writer)
    return done.returncode


assert without_reader("run", "-o", "x.mst", "--", "sh", "-c", "exit 7") == 7
left = "setsid sleep 600 > /dev/null 2>&1 & echo $! > pid; exit 7"
assert without_reader("watch", "-o", "x.mst", "--grace=500ms", "--end", "--", "sh", "-c", left) == 7
assert not os.path.exists("/proc/" + open("pid").read().strip())
assert without_reader("run", "-o", "x.mst", "--", "cat", "/etc/passwd", stream="stdout") == 128 + 13
