# timeout: 300
"""The shutdown coordinator works for a program in Python: its ready-made handlers, dependencies and time limits. If a
queue does not drain, its work is cancelled. Each process and thread ends, or the log names it. The limit holds even if
a thread never gives Python's lock back. The handlers run without memstow, too."""
import json, os, pathlib, signal, sqlite3, subprocess, time

from support import MEMSTOW, PYTHON, ROOT, compile, is_gone, memstow, run, start, wait_for

compile("""#include <unistd.h>
void run(void) {
    for (volatile int i = write(1, "ready\\n", 6);; i++) continue;
}
""", "endless", ("-shared", "-fPIC", "-O1"))
environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python")}
pathlib.Path("app.py").write_text(r"""
import ctypes, os, queue, signal, sqlite3, subprocess, sys, threading, time
import memstow_shutdown as shutdown

fault = sys.argv[1]
jobs, stopping, order = queue.Queue(), threading.Event(), []

def work():
    while not stopping.is_set():
        try:
            job = jobs.get(timeout=0.05)
        except queue.Empty:
            continue
        time.sleep(job)
        jobs.task_done()

worker = threading.Thread(target=work, name="worker")
worker.start()
database = sqlite3.connect("app.db", check_same_thread=False)
database.execute("create table if not exists done (word text)")
database.execute("insert into done values ('kept')")
out = open("app.txt", "w")
out.write("flushed")
shutdown.drain_queue(jobs, cancel=lambda: order.append("cancelled"), seconds=0.5 if fault == "jobs" else 10)
shutdown.stop_thread(worker, stopping.set)
shutdown.close(database, "database", after=["worker"])
shutdown.close(out, "text", after=["database"])
shutdown.quit_qt()

@shutdown.handler
def fine():
    order.append("fine")

child = shutdown.process(subprocess.Popen(["sleep", "600"]), "child")
kept = shutdown.process(subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL),
                        "server", keep=fault == "kept")
print(child.pid, kept.pid, flush=True)
jobs.put(0.1)
if fault == "jobs":
    jobs.put(3)
if fault == "handler":
    shutdown.handler(lambda: time.sleep(60), "slow", seconds=0.5)
    shutdown.handler(lambda: 1 / 0, "wrong")
if fault == "thread":
    for name in ("stuck", "stuck too"):
        threading.Thread(target=lambda: time.sleep(600), name=name).start()
if fault == "lock": # Python's lock is held for good
    shutdown.on_signals(limit=2, status=71)
    ctypes.PyDLL("./endless").run()
if fault == "signal":
    shutdown.on_signals()
    print("ready", flush=True)
    time.sleep(600)
if fault == "closed": # nothing can be written any more
    shutdown.on_signals()
    print("ready", flush=True)
    sys.stdout.close()
    time.sleep(600)
if fault == "during": # the program ends while a signal's shutdown is at work
    told = threading.Event()
    @shutdown.handler
    def slow():
        told.set()
        time.sleep(1)
        open("slow.txt", "w").write("all of it")
    shutdown.on_signals()
    shutdown.at_exit()
    print("ready", flush=True)
    while not told.wait(0.05):
        pass
    sys.exit(0)
if fault == "gone": # it has ended before it was to be kept
    kept.kill()
    kept.wait()
if fault == "recycled": # the pid is another's by now
    shutdown._processes[kept.pid].start = "1"
if fault == "drain": # one in C does not drain
    from memstow import _library
    class Handler(ctypes.Structure):
        _fields_ = [("size", ctypes.c_uint32), ("stage", ctypes.c_uint32),
                    ("name", ctypes.c_char_p), ("after", ctypes.c_char_p),
                    ("ms", ctypes.c_uint32), ("parallel", ctypes.c_uint32),
                    ("run", ctypes.c_void_p), ("context", ctypes.c_void_p)]
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(lambda context: -5)
    run = ctypes.cast(function, ctypes.c_void_p).value
    handler = Handler(ctypes.sizeof(Handler), 2, b"in C", None, 0, 0, run, None)
    assert ctypes.CDLL(None).memstow_shutdown_handler(ctypes.byref(handler)) == 0
if fault == "exit":
    shutdown.at_exit()
elif fault != "during":
    result = shutdown.run("the test", limit=10 if fault == "thread" else 30, status=72, server_mode=fault == "gone",
                          keep=["server"])
    print(sorted(result.failed), result.killed, result.threads, order, result.clean, flush=True)
""")


def life(fault, status=0, tracked=True):
    for name in ("shutdown.log", "process_registry.json", "app.txt", "app.db"):
        pathlib.Path(name).unlink(missing_ok=True)
    before = ["run", "--quiet", "-o", "x.mst", "--"] if tracked else []
    done = (memstow if tracked else run)(*before, PYTHON, "app.py", fault, status=status, env=environment)
    lines = done.stdout.splitlines()
    log = pathlib.Path("shutdown.log")
    steps = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return [int(pid) for pid in lines[0].split()], "\n".join(lines[1:]), steps


for tracked in (True, False):
    pids, text, steps = life("none", tracked=tracked)
    assert text == "[] 0 () ['fine'] True", text
    assert all(map(is_gone, pids))
    assert pathlib.Path("app.txt").read_text() == "flushed"
    assert sqlite3.connect("app.db").execute("select word from done").fetchall() == [("kept",)]
    assert not pathlib.Path("process_registry.json").exists()
    order = [(line["step"], line.get("name")) for line in steps]
    if tracked:
        assert order[0][0] == "begin" and order[-1][0] == "end" and ("drain", "queue") in order, order
        assert order.index(("clean", "worker")) < order.index(("clean", "database")) < order.index(
            ("clean", "text")), order
        assert ("process", "child") in order and not any(step == "cancel" for step, _ in order), order
    else:
        assert not steps

pids, text, steps = life("jobs")
assert "TimeoutError" in text and "'cancelled'" in text and "False" in text, text
assert ("cancel", "queue: cancel") in [(line["step"], line.get("name")) for line in steps], steps
pids, text, steps = life("handler")
assert "('slow', 'not within 0.5 s')" in text and "('wrong', 'ZeroDivisionError: division by zero')" in text, text
pids, text, steps = life("kept")
assert is_gone(pids[0]) and not is_gone(pids[1]) and text.startswith("[] 0"), text
os.kill(pids[1], signal.SIGKILL)
pids, text, steps = life("thread", status=72) # Python waits for its thread for ever; the limit does not
assert "('stuck', 'stuck too')" in text, text
assert [(line["name"], line["result"]) for line in steps
        if line["step"] == "thread"] == [("stuck", -110), ("stuck too", -110)], steps
before, *_, after = [line["ms"] for line in steps if line["step"] in ("process", "thread")]
assert 2900 < after - before < 5900, steps # three seconds for both together
assert steps[-1]["step"] in ("forced", "left thread"), steps[-1]
pids, text, steps = life("exit")
assert steps[0]["step"] == "begin" and steps[-1]["step"] == "end" and all(map(is_gone, pids)), steps

pids, text, steps = life("gone")
assert text == "[] 0 () ['fine'] True" and steps[-1]["step"] == "end", (text, steps)
pids, text, steps = life("recycled", tracked=False)
# the process with the recycled pid is a child of the program, so it counts as left
assert is_gone(pids[0]) and not is_gone(pids[1]) and text == "[] 0 () ['fine'] False", text
os.kill(pids[1], signal.SIGKILL)
pids, text, steps = life("drain")
assert "('1 handlers in C', 'drain')" in text and "'cancelled'" in text, text

for fault, status in (("lock", 71), ("signal", 128 + signal.SIGTERM), ("closed", 128 + signal.SIGTERM),
                      ("during", 128 + signal.SIGTERM)):
    pathlib.Path("shutdown.log").unlink(missing_ok=True)
    process = start(MEMSTOW, "run", "--quiet", "-o", "y.mst", "--", PYTHON, "app.py", fault, stdout=subprocess.PIPE,
                    text=True, env=environment)
    pids = [int(pid) for pid in process.stdout.readline().split()]
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.terminate()
    assert process.wait(60) == status, (fault, process.returncode)
    steps = [json.loads(line) for line in pathlib.Path("shutdown.log").read_text().splitlines()]
    assert (fault == "lock") == any(line["step"] == "forced" for line in steps), steps
    wait_for(lambda: all(map(is_gone, pids)), 10)
assert pathlib.Path("slow.txt").read_text() == "all of it"
