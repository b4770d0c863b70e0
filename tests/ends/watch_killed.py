"""kill -9 of memstow leaves the program and its processes unharmed: they go on to their end."""
import pathlib, subprocess, time

from support import MEMSTOW, start, wait_for

script = "(sleep 2.5; echo child >child.txt) & sleep 2; echo main >main.txt; wait"
process = start(MEMSTOW, "watch", "--grace=5s", "--", "sh", "-c", script, stderr=subprocess.PIPE)
time.sleep(1.3)
process.kill()
process.wait()
assert not pathlib.Path("main.txt").exists()
wait_for(lambda: pathlib.Path("main.txt").exists() and pathlib.Path("child.txt").exists(), 20)
