"""A stopped process does not answer a request. With --timeout, the request ends soon after the time limit, and changes
nothing."""
import os, pathlib, signal, time

from support import MEMSTOW, PYTHON, memstow, start, wait_for

program = """
import ctypes, os, time
ctypes.CDLL(None).memstow_owner_open(1, b"model", b"", ctypes.c_uint64(1), ctypes.c_uint64(1))
open("new", "w").write(str(os.getpid()))
os.rename("new", "pid")
time.sleep(100)
"""
command = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", PYTHON, "-c", program)
wait_for(pathlib.Path("pid").exists)
pid = int(pathlib.Path("pid").read_text())
memstow("stow", pid, "model")
os.kill(pid, signal.SIGSTOP)
begun = time.monotonic()
done = memstow("stow", pid, "model", "--timeout=1", status=3)
took = time.monotonic() - begun
assert done.stderr == f"memstow: process {pid} does not answer: is it stopped?\n", done.stderr
assert 1 <= took < 15, took
os.kill(pid, signal.SIGCONT)
memstow("stow", pid, "model", "--timeout=60")
os.kill(pid, signal.SIGKILL)
command.wait()
