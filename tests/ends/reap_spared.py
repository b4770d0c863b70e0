"""Processes that reap does not end:
- processes that are to be kept, whatever else a list says of them, and their descendants;
- all processes of a program that runs, also if only its second thread runs, or if it is process 1;
- processes of another user: they are named, and count as left.
What one list says of a process holds for all lists that are read. If one list cannot be read, no process is ended."""
import json, os, pathlib, subprocess

from _ends import faults
from support import MEMSTOW, memstow, start, wait_for

boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def stat(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def entry(pid, **more):
    return {"pid": pid, "start_ticks": int(stat(pid)[19]), **more}


def write(*processes, parent=None, number=""):
    path = pathlib.Path(f"process_registry.{number}json")
    path.write_text(json.dumps({"format": "memstow-processes", "version": 1, "boot_id": boot, "processes": processes,
                                "parent": parent or {"pid": 4194303, "start_ticks": 1}}))
    return path


def reap(*processes, parent=None, status=0):
    write(*processes, parent=parent)
    return memstow("reap", "--end", status=status).stdout


def parent_of(pid):
    try:
        return stat(pid)[1]
    except OSError: # it is gone
        return None


def child_of(pid):
    return wait_for(lambda: [int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and
                             parent_of(p.name) == str(pid)])[0]


# A worker leads a process group of three: the worker itself, a server that is to be kept, and the server's child.
worker = start("sh", "-c", "sh -c 'sleep 600 & wait' & sleep 600", start_new_session=True)
server = wait_for(
    lambda: [pid for pid in [child_of(worker.pid)] if "sh" in pathlib.Path(f"/proc/{pid}/cmdline").read_text()])[0]
child = child_of(server)
text = reap(entry(worker.pid), entry(server), entry(server, keep=True))
assert f"pid {worker.pid}, " in text and f"pid {server}," not in text and f"pid {child}," not in text, text
assert stat(server)[0] not in "ZX" and stat(child)[0] not in "ZX"

# A program crashed twice and left two lists. Only one of the lists says that the process is to be kept, and that is
# enough. Later the list of a running program is damaged. This list may name processes that are to be kept, so reap ends
# no process at all.
kept = start("sh", "-c", "sleep 600 & wait")
below = wait_for(lambda: pathlib.Path(f"/proc/{kept.pid}/task/{kept.pid}/children").read_text().split())[0]
for number, other in (("", "4194302."), ("4194302.", "")): # in the first list that is read, and in the second
    write(entry(kept.pid, keep=True), number=number), write(entry(kept.pid), number=other)
    text = memstow("reap", "--end").stdout
    assert text.count("none of its processes is left") == 2 and stat(kept.pid)[0] not in "ZX", text
    assert stat(below)[0] not in "ZX", text
write(parent=entry(os.getpid())).write_text("{")
aside = write(entry(kept.pid), number="4194302.")
done = memstow("reap", "--end", status=3)
assert done.stderr.startswith("memstow: process_registry.json:1:2: this is not JSON"), done.stderr
assert done.stderr.endswith("\nmemstow: no process was ended: this list may name processes that must not be ended "
                            "(remove what cannot be read, or name only the other lists)\n"), done.stderr
assert not done.stdout and stat(kept.pid)[0] not in "ZX"
assert f"pid {kept.pid}, " in memstow("reap", status=3).stdout # without --end it is shown
damaged = write(number="4194301.")
damaged.write_text("[")
done = memstow("reap", "--end", status=3).stderr # both lists are named
assert ("process_registry.json:1:2: " in done and "4194301.json:1:1: " in done
        and "no process was ended: these lists may" in done), done
damaged.unlink()
# A list that is named on the command line is read alone.
assert f"pid {kept.pid}, " in memstow("reap", "--end", aside).stdout and kept.wait(10) == -15
aside.unlink()

# A launcher in the group of a kept process started another process, and ended. The other process stays, although it is
# registered to end.
leader = start("sh", "-c", "(sleep 600 & echo $! > new; mv new behind); exec sleep 600", start_new_session=True)
wait_for(lambda: pathlib.Path("behind").exists())
behind = int(pathlib.Path("behind").read_text())
text = reap(entry(leader.pid, keep=True), entry(behind))
assert "none of its processes is left" in text and stat(behind)[0] not in "ZX" and leader.poll() is None, text
os.killpg(leader.pid, 9), leader.wait()

# A program whose first thread has ended still runs; so does process 1.
program, left = start(faults(), "here", "first-ends"), start("sleep", "600")
wait_for(lambda: stat(program.pid)[0] == "Z")
for parent in (entry(program.pid), entry(1)):
    assert "still runs: left alone" in reap(entry(left.pid), parent=parent)
assert f"pid {program.pid}, " in reap(entry(program.pid)) and program.wait(10) == -15 and left.poll() is None

if os.getuid() == 0:
    other = subprocess.Popen(["sleep", "600"], user=65534)
    try:
        text = reap(entry(other.pid), status=1)
        assert f"pid {other.pid}, " in text and "belongs to another user: left alone" in text, text
        assert "none of its processes is left" not in text and other.poll() is None
    finally:
        other.kill(), other.wait()
memstow("reap", "--end", status=0)

# If reap cannot read which boot this is, it does not know whether a list is of this boot. So it leaves the list and its
# processes alone.
empty = pathlib.Path("empty")
empty.touch()
hide = ["unshare", "-m", "sh", "-c", f'mount --bind {empty.resolve()} /proc/sys/kernel/random/boot_id && exec "$@"',
        "sh"]
if subprocess.run([*hide, "true"], stderr=subprocess.DEVNULL).returncode == 0: # may this process mount?
    aside = write(entry(server), number="4194302.")
    done = subprocess.run([*hide, MEMSTOW, "reap", "--end"], capture_output=True, text=True)
    assert "4194302.json: it is not known whether the machine was started again since: left alone" in done.stdout, done
    assert done.returncode == 0 and aside.exists() and stat(server)[0] not in "ZX"
    aside.unlink()
for pid in (server, child):
    os.kill(pid, 9)
