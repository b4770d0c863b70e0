"""The following holds for the processes of a Python program, with and without memstow. If start() began a process, the
process is ended with all of its descendants. The descendants are ended even if the process is a launcher script that
has ended already. A process that ignores SIGTERM is killed. In server mode (an argument, or MEMSTOW_SERVER_MODE),
either all processes with a name live on, or only the processes whose names are given. A process without a name ends.
All of this also holds if the list cannot be written. If the coordinator has no room for another process, a new process
is ended at once with its descendants."""
import os, pathlib, signal, subprocess

from support import HERE, MEMSTOW, PYTHON, ROOT, is_gone, start, wait_for

pathlib.Path("children.py").write_text(r"""
import os, pathlib, signal, subprocess, sys, time
import memstow_shutdown as shutdown

shutdown.PROCESS_SECONDS = 3 if sys.argv[1] == "groups" else 10 # machines may be busy
quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

def launch(name, script):
    # a launcher whose grandchild says its pid
    child = shutdown.start(["sh", "-c", script.format(name)], name, **quiet)
    while not pathlib.Path(name).exists() or not pathlib.Path(name).read_text().endswith("\n"):
        time.sleep(0.02)
    return child

if sys.argv[1] == "groups":
    launch("heeds", "sleep 600 & echo $! > {}; wait")
    launch("ignores", "trap '' TERM; sleep 600 & trap - TERM; echo $! > {}; wait")
    launch("gone", "trap '' TERM; sleep 600 & echo $! > {}")
    own = shutdown.process(subprocess.Popen(["sleep", "600"], **quiet), "in our group")
    assert os.getpgid(own.pid) == os.getpgrp()
if sys.argv[1] == "many":
    for _ in range(256):
        child = os.fork()
        if not child:
            signal.signal(signal.SIGTERM, signal.SIG_DFL), signal.pause()
        shutdown.process(child)
    register = shutdown._register
    def when_it_has_begun(*words):
        while not os.path.exists("behind it"):
            time.sleep(0.02)
        return register(*words)
    shutdown._register = when_it_has_begun
    try:
        print(shutdown.start(["sh", "-c", "sleep 600 & echo $! > new; mv new 'behind it'; wait"], **quiet))
    except shutdown.memstow.Error as error:
        print(error)
options = {}
if sys.argv[2:]:
    if sys.argv[1] == "unlisted":
        shutdown.files(registry="nowhere/list.json")
    for name in ("server", "database", ""):
        child = shutdown.start(["sleep", "600"], name, **quiet)
        pathlib.Path(name or "nameless").write_text(str(child.pid))
    options = eval(sys.argv[2])
result = shutdown.run("the test", **options)
print(result.killed, sorted(result.failed))
""")


def begin(name, *words, tracked=True, **environment):
    """A life in a folder of its own. Several run at once."""
    folder = HERE / name
    folder.mkdir()
    before = [MEMSTOW, "run", "--quiet", "-o", "x.mst", "--"] if tracked else []
    return folder, start(*before, PYTHON, HERE / "children.py", *words, cwd=folder, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python"), **environment})


def end(life):
    """The output of a life, and the pids in its files."""
    folder, process = life
    out = process.communicate(timeout=60)[0]
    assert process.returncode == 0, out
    return out.strip(), {path.name: int(path.read_text()) for path in folder.iterdir() if not path.suffix}


many, unlisted = begin("many", "many"), begin("unlisted", "unlisted", "dict(server_mode=True)")
out, pids = end(many)
assert "there are 256 processes" in out and is_gone(pids["behind it"]), out
out, pids = end(unlisted)
assert out == "0 []" and is_gone(pids.pop("nameless")) and len(pids) == 2, (out, pids)
assert not any(map(is_gone, pids.values())), (out, pids)
for pid in pids.values():
    os.kill(pid, signal.SIGKILL)

for life in [begin(f"groups {tracked}", "groups", tracked=tracked) for tracked in (True, False)]:
    out, pids = end(life)
    assert out == "2 []", out
    wait_for(lambda: len(pids) == 3 and all(map(is_gone, pids.values())), 5)

cases = [("all", "", {"server", "database"}), ("server", "", {"server"}),
         ("server, database", "", {"server", "database"}), ("0", "", set()), ("", "", set()),
         ("all", "server_mode=False", set()), ("", "server_mode=True", {"server", "database"}),
         ("", "server_mode=True, keep=['database']", {"database"}), ("", "keep=['database']", set())]
for tracked, some in ((True, cases[:2]), (False, cases)):
    lives = [begin(f"server {number} {tracked}", "server", f"dict({options})", tracked=tracked,
                   MEMSTOW_SERVER_MODE=asked) for number, (asked, options, _) in enumerate(some)]
    for (asked, options, expected), life in zip(some, lives):
        out, pids = end(life)
        assert out == "0 []", out
        wait_for(lambda: {name for name, pid in pids.items() if not is_gone(pid)} == expected, 5, f"{asked} {options}")
        assert (life[0] / "process_registry.json").exists() == (tracked and bool(expected))
        for name in expected:
            os.kill(pids[name], signal.SIGKILL)
