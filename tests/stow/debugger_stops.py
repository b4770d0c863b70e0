"""A debugger stops all threads of a program again and again, in any order, while its memory moves all the time. Each
thread stops, and memory is whole. During a move, a thread may wait in the kernel until an event is read. The
thread cannot be stopped while it waits. If the debugger had stopped the thread that reads the events, this wait would
not end, and the debugger would wait for ever. So a helper process of memstow, which the debugger does not stop, reads
the events, too. Memory stays whole if this process is killed. The process ends with the program."""
import ctypes, os, pathlib, signal, subprocess, time

import _moving, support

SEIZE, INTERRUPT, DETACH, WALL, STOPS = 0x4206, 0x4207, 17, 0x40000000, 200
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def threads(pid):
    return [int(t) for t in os.listdir(f"/proc/{pid}/task")]


def ask(request, thread):
    if libc.ptrace(request, thread, None, None) == 0:
        return True
    if request == SEIZE and ctypes.get_errno() == 1 and os.path.exists(f"/proc/{thread}"):
        support.skip("this process may not trace another")
    return False # it has ended meanwhile


def has_stopped(thread):
    try:
        return os.waitpid(thread, WALL | os.WNOHANG)[0] == thread
    except ChildProcessError:
        return True


def stop_all(pid, newest_first):
    seized = set()
    while new := sorted(set(threads(pid)) - seized, reverse=newest_first):
        for thread in new:
            if ask(SEIZE, thread):
                ask(INTERRUPT, thread)
        seized.update(new)
    running, end = seized, time.monotonic() + 60
    while running := {thread for thread in running if not has_stopped(thread)}:
        assert time.monotonic() < end, f"of the threads {sorted(seized)} these did not stop: {sorted(running)}"
        time.sleep(0.001)
    for thread in seized:
        ask(DETACH, thread)


def children():
    files = pathlib.Path(f"/proc/{process.pid}/task").glob("*/children")
    return [int(pid) for file in files for pid in read(file).split()]


def read(file):
    try:
        return file.read_text()
    except OSError:
        return ""


program, folder = _moving.program("dumped"), _moving.real_disk()
process = support.start(program, "moving", env=_moving.environment(folder), stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE, text=True)
while (line := process.stdout.readline()) != "ready\n":
    assert line, f"exit status {process.wait()}"
for i in range(STOPS):
    time.sleep(0.005)
    stop_all(process.pid, i % 2)
for _ in range(10):
    os.kill(support.wait_for(children, what="a process beside the move")[0], signal.SIGKILL)
process.stdin.write("check\n"), process.stdin.flush()
assert process.stdout.readline() == "whole\n"
beside = support.wait_for(children, what="a process beside the move")
process.kill()
process.wait()
support.wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in beside), what="their end")
folder.rmdir()
