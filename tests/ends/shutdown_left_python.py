"""With and without memstow, run() reports what is left of a Python program: threads, and processes that nobody
registered. It also reports the descendants of such processes, even if the launcher that started them has ended. If a
process is left, the end was not clean. A process that was to live on, or that has ended meanwhile, does not count.
Threads that nobody waits for are counted separately, and are no fault."""
import json, os, pathlib

from support import MEMSTOW, PYTHON, ROOT, run

pathlib.Path("app.py").write_text(r"""
import os, subprocess, sys, threading, time
import memstow_shutdown as shutdown

fault = sys.argv[1]
shutdown.handler(lambda: None, "nothing")
quiet = dict(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
children = []
if fault in ("child", "ends", "twice"):
    children.append(subprocess.Popen(["sleep", "60"], **quiet))
if fault == "launcher": # in a session of its own, so that nothing but the environment says whose it is
    subprocess.run(["setsid", "sh", "-c", "sleep 60 & echo $! > server.pid"], **quiet)
if fault == "kept":
    children.append(shutdown.start(["sh", "-c", "sleep 60 & wait"], "server", keep=True, **quiet))
if fault == "ends":
    shutdown.handler(lambda: (children[0].kill(), children[0].wait()), "end it")
if fault == "daemon":
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
while fault == "pipeline" and not os.path.exists("there"):
    time.sleep(0.01)
assert fault != "pipeline" or os.getpgid(0) == os.getpid()
result = shutdown.run("the test", goes_on=True)
print(result.clean, [name.split()[0] for name in result.processes], result.other_threads, len(result.threads),
      flush=True)
if fault == "twice":
    children[0].kill(), children[0].wait()
    result = shutdown.run("again", goes_on=True)
    print(result.clean, result.processes)
for child in children:
    child.kill()
""")
cases = {"none": "True [] 0 0", "child": "False ['sleep'] 0 0", "launcher": "False ['sleep'] 0 0",
         "kept": "True [] 0 0", "ends": "True [] 0 0", "daemon": "True [] 1 0", "twice": "False ['sleep'] 0 0\nTrue ()"}
for tracked in (True, False):
    for fault, expected in cases.items():
        before = [MEMSTOW, "run", "--quiet", "-o", "x.mst", "--"] if tracked else []
        done = run(*before, PYTHON, "app.py", fault, env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python")})
        assert done.stdout.strip() == expected, (fault, tracked, done.stdout, done.stderr)
        if fault == "launcher":
            os.kill(int(pathlib.Path("server.pid").read_text()), 9)
        if tracked:
            lines = [json.loads(line) for line in pathlib.Path("shutdown.log").read_text().splitlines()]
            end, = [line for line in lines if line["step"] == "end"][:1]
            assert end["processes_left"] == expected.count("sleep"), (fault, end)
            pathlib.Path("shutdown.log").unlink()

# The program leads a pipeline. The other processes of the pipeline have the same parent as the program, and do not
# count as left.
run("bash", "-c", f"""set -m
{PYTHON} app.py pipeline >out.txt | sh -c 'touch there; exec sleep 60' &
until grep -q . out.txt; do sleep 0.05; done
kill -9 %1""", env={**os.environ, "PYTHONPATH": str(ROOT / "tools/python")})
assert pathlib.Path("out.txt").read_text() == "True [] 0 0\n", pathlib.Path("out.txt").read_text()
