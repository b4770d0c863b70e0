"""Running programs keep lists beside the list of a crashed program. Registered processes of the crashed program are
ended, although they are in a session or group that a running program began. A process that a running program has taken
over lives on, and so do all processes that have the same mark. A process that is not registered and only has the
crashed program's mark lives on, too, if it is in the session or group of a running program."""
import json, os, pathlib, signal

from support import is_gone, memstow, start, wait_for

boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
GONE = {"pid": 4194303, "start_ticks": 1}


def entry(pid, **more):
    return {"pid": pid,
            "start_ticks": int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]), **more}


def write(name, *processes, parent):
    pathlib.Path(f"process_registry.{name}json").write_text(json.dumps(
        {"format": "memstow-processes", "version": 1, "boot_id": boot, "processes": processes, "parent": parent}))


def behind(name, number=0):
    """Starts the leader of a session, and in the same session a process that is not the leader's child. If `number` is
    not 0, both processes have the mark with this number."""
    script = f"(sh -c 'echo $$ > new; mv new {name}; sleep 600; :' &); exec sleep 600"
    environment = {**os.environ, "MEMSTOW_STARTED": "4194303.1.%d" % number}
    leader = start("sh", "-c", script, start_new_session=True, env=environment if number else None)
    wait_for(pathlib.Path(name).exists)
    return leader, int(pathlib.Path(name).read_text())


# The running program began the session in which the crashed program had a worker.
program, worker = behind("worker")
write("", parent=entry(program.pid))
write("4194303.", entry(worker), parent=GONE)
text = memstow("reap", "--end").stdout
assert f"pid {worker}, " in text and "none of its processes is left" not in text, text
wait_for(lambda: is_gone(worker), 10)
assert program.poll() is None
os.killpg(program.pid, signal.SIGKILL), program.wait()

# A launcher of the crashed program started the running program, so the running program has the mark of the crashed one.
# Processes in the running program's session have inherited the mark, too.
program, daemon = behind("daemon", 7)
launcher = start("sleep", "600")
write("", parent=entry(program.pid))
write("4194303.", entry(launcher.pid, number=7), parent=GONE)
text = memstow("reap", "--end").stdout
assert f"pid {launcher.pid}, " in text and launcher.wait(10) == -15, text
assert program.poll() is None and not is_gone(daemon)
os.killpg(program.pid, signal.SIGKILL), program.wait()

# The running program has taken over a server by its pid. A process in another session has the same mark as the server.
# reap leaves the server and this process alone.
server, its = behind("its", 7)
apart = start("sleep", "600", start_new_session=True, env={**os.environ, "MEMSTOW_STARTED": "4194303.1.7"})
other = start("sleep", "600", start_new_session=True, env={**os.environ, "MEMSTOW_STARTED": "4194303.1.8"})
write("", entry(server.pid), parent=entry(os.getpid()))
write("4194303.", entry(server.pid, number=7), {**GONE, "pid": 4194302, "number": 8}, parent=GONE)
text = memstow("reap", "--end").stdout
assert f"pid {other.pid}, " in text and other.wait(10) == -15, text
assert server.poll() is None and not is_gone(its) and apart.poll() is None, text
for one in (server, apart):
    os.killpg(one.pid, signal.SIGKILL), one.wait()
