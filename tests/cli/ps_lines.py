"""On a terminal, ps prints lines of 80 columns. Into a pipe, it prints whole names. A figure of less than 1 MiB is
shown as "< 1 MiB"."""
import os, pty
from _terminal import need
from support import MEMSTOW, memstow, start, wait_for

need()

folder = "a-folder-with-a-long-name" * 4
os.mkdir(folder)
file = os.path.abspath(f"{folder}/out.mst")
run = start(MEMSTOW, "run", "--quiet", "-o", file, "--", "sleep", "60")
wait_for(lambda: file in memstow("ps").stdout, what="the line of the process")
line = next(line for line in memstow("ps").stdout.split("\n") if line.endswith(file))
assert line.split()[1] == "sleep" and line.count(" < 1 MiB ") == 2, line
written = []


def read(descriptor):
    data = os.read(descriptor, 4096)
    written.append(data)
    return data


null = os.open(os.devnull, os.O_RDWR)
os.dup2(null, 0)
status = pty.spawn([MEMSTOW, "ps"], read)
lines = b"".join(written).decode().replace("\r", "").split("\n")
assert status == 0 and any("sleep" in line for line in lines) and max(map(len, lines)) <= 80, lines
run.kill()
