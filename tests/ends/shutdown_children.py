"""The processes of a Python program, under memstow and without: one that was started by start() ends with all that is behind it, also
when it is a launcher script that has ended before, and who ignores SIGTERM is killed."""
import os, pathlib, subprocess

from support import HERE, MEMSTOW, PYTHON, ROOT, start, wait_for
from _ends import is_gone

pathlib.Path("children.py").write_text(r"""
import os, pathlib, subprocess, sys, time
import memstow_shutdown as shutdown

shutdown.PROCESS_SECONDS = 1
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
result = shutdown.run("the test")
print(result.killed, sorted(result.failed))
""")


def begin(name, *words, tracked=True, **environment):
    """A life in a folder of its own; several are under way at once."""
    folder = HERE / name
    folder.mkdir()
    before = [MEMSTOW, "run", "--quiet", "-o", "x.mst", "--"] if tracked else []
    return folder, start(*before, PYTHON, HERE / "children.py", *words, cwd=folder, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python"), **environment})


def end(life):
    """What it said, and the pids in its files."""
    folder, process = life
    out = process.communicate(timeout=60)[0]
    assert process.returncode == 0, out
    return out.strip(), {path.name: int(path.read_text()) for path in folder.iterdir() if not path.suffix}


for life in [begin(f"groups {tracked}", "groups", tracked=tracked) for tracked in (True, False)]:
    out, pids = end(life)
    assert out == "2 []", out
    wait_for(lambda: len(pids) == 3 and all(map(is_gone, pids.values())), 5)
