"""kill -9 of memstow leaves the program and its processes unharmed: they go on to their end."""
import pathlib, subprocess

from support import MEMSTOW, start, wait_for

script = """goes_on() { : >$1.begun; until [ -e killed ]; do sleep 0.1; done; echo $1 >$1.txt; }
goes_on child & goes_on main; wait"""
process = start(MEMSTOW, "watch", "--grace=5s", "--", "sh", "-c", script, stderr=subprocess.PIPE)
wait_for(lambda: pathlib.Path("main.begun").exists() and pathlib.Path("child.begun").exists())
process.kill()
process.wait()
pathlib.Path("killed").touch()
wait_for(lambda: pathlib.Path("main.txt").exists() and pathlib.Path("child.txt").exists(), 20)
