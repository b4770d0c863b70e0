"""Processes that a kept process has started live on with it. The rule is the same for the coordinator, with and without
memstow, for `watch`, and for `reap` after a crash. These processes stay:
- a worker of a kept server, in the group of a launcher that ends;
- another worker, although it is itself registered to end;
- a process behind a double fork, in the group of a kept process;
- a process in the session of a manager that the server has started.
Other members of the launcher's group end."""
import concurrent.futures, os, pathlib, re, signal, subprocess

from support import HERE, MEMSTOW, PYTHON, ROOT, is_gone, memstow, wait_for
from _ends import pids

pathlib.Path("app.py").write_text(r"""
import os, pathlib, subprocess, sys, time
import memstow_shutdown as shutdown
quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

def pid_in(name):
    while not pathlib.Path(name).exists():
        time.sleep(0.02)
    return int(pathlib.Path(name).read_text())

# one launcher, its group: the server, which has a worker, and a helper
launcher = shutdown.start(["sh", "-c", "sh ../server.sh & sh ../sleeps.sh helper & wait"], "launcher", **quiet)
shutdown.process(pid_in("server"), "server", keep=True)
shutdown.process(pid_in("registered"), "registered")
shutdown.process(pid_in("deep"), "deep")
apart = shutdown.start(["sh", "-c", "(sh ../sleeps.sh behind &) & sh ../sleeps.sh apart; :"], "apart", keep=True,
                       **quiet)
for name in ("helper", "worker", "behind", "apart", "manager"):
    pid_in(name)
pathlib.Path("launcher").write_text(str(launcher.pid))
if sys.argv[1] == "crash":
    os.kill(os.getpid(), 9)
result = shutdown.run("the test")
print(result.killed, result.failed, flush=True)
""")
pathlib.Path("sleeps.sh").write_text('echo $$ > new.$1; mv new.$1 $1; exec sleep 600\n')
pathlib.Path("manager.sh").write_text('(sh ../sleeps.sh deep &); exec sh ../sleeps.sh manager\n')
pathlib.Path("server.sh").write_text('sh ../sleeps.sh worker & sh ../sleeps.sh registered & setsid sh ../manager.sh & '
                                     'echo $$ > new.server; mv new.server server; wait\n')
STAY, END = {"server", "worker", "registered", "manager", "deep", "behind", "apart"}, {"launcher", "helper"}


def life(name, *before, then="end", status=0):
    folder = HERE / name
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python")}
    done = subprocess.run([*before, PYTHON, HERE / "app.py", then], cwd=folder, env=environment, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == status, done
    return folder, done


def check(folder, text):
    """Asserts which processes are left."""
    left = {name: int((folder / name).read_text()) for name in STAY | END}
    try:
        wait_for(lambda: all(is_gone(left[name]) for name in END), 5, (folder, text, left))
        assert not any(is_gone(left[name]) for name in STAY), (folder, text, left)
    finally:
        for pid in left.values():
            if not is_gone(pid):
                os.kill(pid, signal.SIGKILL)
    return left


run, watch = (MEMSTOW, "run", "--quiet", "-o", "x.mst",
              "--"), (MEMSTOW, "watch", "--quiet", "--grace=2s", "--server-mode", "--end", "--")
with concurrent.futures.ThreadPoolExecutor() as pool:
    lives = {name: pool.submit(life, name, *before, then=then, status=status) for name, before, then,
             status in (("coordinator", run, "end", 0), ("alone", (), "end", 0), ("watch", watch, "crash", 137),
                        ("reap", run, "crash", 137))}
for name in ("coordinator", "alone"):
    folder, done = lives[name].result()
    assert done.stdout == "0 ()\n", done
    check(folder, done)
assert "left process" not in pathlib.Path("coordinator/shutdown.log").read_text()
folder, done = lives["watch"].result()
spared = re.findall(r"left alive, as asked: (.*)$", done.stderr, re.M)
left = check(folder, done)
assert len(spared) == 1 and {left[name] for name in STAY} <= set(pids(spared[0])), (spared, left)
folder, done = lives["reap"].result()
check(folder, memstow("reap", "--end", folder / "process_registry.json").stdout)
