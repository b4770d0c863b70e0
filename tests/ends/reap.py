"""reap finds processes that a gone program left, by pid and start time. By default it only lists them. --end ends them,
their children and their groups; a process that ignores SIGTERM gets SIGKILL. Processes that are to be kept, and a
recycled pid, are left alone. While the program runs, all processes on its list are left alone."""
import json, os, pathlib, re, signal, subprocess

from _ends import faults
from support import is_gone, memstow, start, wait_for

boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def ticks(pid):
    return int(pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def ignored(pid):
    """The signals that the process ignores, a bit for each."""
    return int(re.search(r"SigIgn:\s*(\w+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1], 16)


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def entry(pid, **more):
    return {"pid": pid, "start_ticks": ticks(pid), "name": "x", **more}


def write(*processes, parent=None, **more):
    document = {"format": "memstow-processes", "version": 1, "boot_id": boot,
                "parent": parent or {"pid": 4194303, "start_ticks": 1}, "processes": list(processes), **more}
    pathlib.Path("process_registry.json").write_text(json.dumps(document))


program = faults()
stubborn = start(program, "here", "ignore", start_new_session=True)
group = start("sh", "-c", "sleep 600 & sleep 600", start_new_session=True)
kept, recycled = start("sleep", "600"), start("sleep", "600")
wait_for(lambda: ignored(stubborn.pid) >> signal.SIGTERM - 1 & 1, what="a program that ignores SIGTERM")
children = wait_for(lambda: len(found := children_of(group.pid)) == 2 and found, what="both children of the shell")
everybody = [entry(stubborn.pid), entry(group.pid), entry(kept.pid, keep=True),
             {**entry(recycled.pid), "start_ticks": ticks(recycled.pid) - 1}]

write(*everybody)
done = memstow("reap", status=1)
assert f"faults (x), pid {stubborn.pid}, " in done.stdout and f"pid {group.pid}, " in done.stdout, done.stdout
assert all(f"pid {child}, " in done.stdout for child in children), done.stdout
assert f"pid {kept.pid}," not in done.stdout and f"pid {recycled.pid}," not in done.stdout, done.stdout
assert "nothing was ended" in done.stdout
assert all(p.poll() is None for p in (stubborn, group, kept, recycled))

write(*everybody, parent=entry(os.getpid()))
assert "still runs: left alone" in memstow("reap", "--end").stdout
write(*everybody, boot_id=boot.translate(str.maketrans("0123456789abcdef", "123456789abcdef0")))
assert "before this machine was started" in memstow("reap", "--end").stdout
assert all(p.poll() is None for p in (stubborn, group, kept, recycled))

write(*everybody, entry(os.getpid()))  # the process that called reap is not ended, whatever is registered
process = subprocess.Popen([os.environ["MEMSTOW"], "reap", "--end"], stdout=subprocess.PIPE, text=True)
out = process.communicate(timeout=60)[0]
assert process.returncode == 0, out
assert f"pid {stubborn.pid}, " in out and "ended on SIGKILL" in out and "ended on SIGTERM" in out, out
assert stubborn.wait(10) == -signal.SIGKILL and group.wait(10) == -signal.SIGTERM
wait_for(lambda: all(is_gone(child) for child in children), 10)
assert kept.poll() is None and recycled.poll() is None
assert "none of its processes is left" in memstow("reap").stdout
