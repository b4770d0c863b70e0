"""A program has several lives in one folder, with and without memstow. The first life is in server mode, and leaves a
server alive. Later lives do not end the server, even if they are not in server mode. If one of them crashes, reap does
not end the server, either. A life that takes the server over by its pid ends the server. start() does not pass
MEMSTOW_SERVER_MODE to the processes that it starts. So the server is not in server mode itself, and ends its own
children when it is ended."""
import json, os, pathlib, signal, subprocess

from support import HERE, MEMSTOW, PYTHON, ROOT, is_gone, memstow, start, wait_for

pathlib.Path("app.py").write_text(r"""
import os, pathlib, subprocess, sys, time
import memstow_shutdown as shutdown
quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
if sys.argv[1] == "serve":
    child = shutdown.start(["sleep", "600"], "below", **quiet)
    shutdown.on_signals()
    pathlib.Path("new").write_text(f"{child.pid} {os.environ.get('MEMSTOW_SERVER_MODE')}")
    os.rename("new", "served")
    time.sleep(600)
if sys.argv[1] == "take":
    shutdown.process(int(sys.argv[2]), "server")
    worker = None
else:
    command, name = ([sys.executable, *sys.argv[2:]], "server") if sys.argv[2:] else (["sleep", "600"], "")
    worker = shutdown.start(command, name, **quiet)
print(worker.pid if worker else 0, flush=True)
sys.stdin.readline()
shutdown.run("the test")
""")


def begin(*words, tracked, mode=""):
    before = [MEMSTOW, "run", "--quiet", "-o", "%p.mst", "--"] if tracked else []
    process = start(*before, PYTHON, HERE / "app.py", *words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                    env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python"), "MEMSTOW_SERVER_MODE": mode})
    return process, int(process.stdout.readline())


def end(process):
    process.communicate("\n", timeout=60)
    assert process.returncode == 0, process.returncode


LIST, SERVED = pathlib.Path("process_registry.json"), pathlib.Path("served")
for tracked in (True, False):
    first, server = begin("live", HERE / "app.py", "serve", tracked=tracked, mode="all")
    wait_for(SERVED.exists)
    below, mode = SERVED.read_text().split()
    SERVED.unlink()
    below = int(below)
    try:
        assert mode == "None", mode
        end(first)
        assert not is_gone(server) and not is_gone(below)
        for mode in ("all", ""): # a process without a name ends
            life, worker = begin("live", tracked=tracked, mode=mode)
            end(life)
            assert is_gone(worker) and not is_gone(server) and not is_gone(below)
        if tracked:
            life, worker = begin("live", tracked=True)
            os.kill(json.loads(LIST.read_text())["parent"]["pid"], signal.SIGKILL)
            life.wait(30)
            assert f"pid {worker}, " in memstow("reap", "--end").stdout
            wait_for(lambda: is_gone(worker), 10)
            assert not is_gone(server) and not is_gone(below)
        life, _ = begin("take", str(server), tracked=tracked)
        end(life)
        # without server mode, the server has ended its own child
        wait_for(lambda: is_gone(server) and is_gone(below), 10)
    finally:
        for pid in (server, below):
            if not is_gone(pid):
                os.kill(pid, signal.SIGKILL)
    for path in pathlib.Path().glob("process_registry*"):
        path.unlink()
