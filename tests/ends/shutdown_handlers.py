"""The rules for handlers in Python hold with and without memstow. A listener stops before everything else. Handlers
that may run side by side do so; others do not. A queue that does not drain counts as failed, and without a cancel
handler, nothing is cancelled. shutdown.close() works for an object without any method but close(), and for an object
that is closed already. If an object's commit() fails, the object is closed all the same, and the handler counts as
failed."""
import json, os, pathlib

from support import PYTHON, ROOT, memstow, run

pathlib.Path("handlers.py").write_text(r"""
import queue, sys, time
import memstow_shutdown as shutdown

order = []

def nap(name):
    def handler():
        order.append(name)
        time.sleep(0.3)
        order.append(f"{name}.")
    return handler

class OnlyCloses:
    def close(self):
        order.append("closed")

class CannotCommit(OnlyCloses):
    def commit(self):
        raise OSError("disk full")

for name in ("a", "b"):
    shutdown.handler(nap(name), name, parallel=True)
for name in ("c", "d"):
    shutdown.handler(nap(name), name, after=["a", "b"])
shutdown.close(OnlyCloses(), "thing", after=["c", "d"])
closed = open("closed.txt", "w")
closed.close()
shutdown.close(closed, after=["thing"])
shutdown.close(CannotCommit(), "full", after=["thing"])
jobs = queue.Queue()
jobs.put(1)
shutdown.drain_queue(jobs, seconds=0.3)
shutdown.handler(lambda: order.append("listener"), "listener", stage="stop")
result = shutdown.run("the test")
print(order)
print(result.failed, result.clean)
""")
environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools/python")}
for tracked in (True, False):
    before = ["run", "--quiet", "-o", "x.mst", "--"] if tracked else []
    order, failed = (memstow if tracked else run)(*before, PYTHON, "handlers.py", env=environment).stdout.splitlines()
    order = eval(order)
    assert order[0] == "listener" and set(order[1:3]) == {"a", "b"} and set(order[3:5]) == {"a.", "b."}, order
    assert order[5:] == ["c", "c.", "d", "d.", "closed", "closed"], order
    assert failed == "(('queue', 'TimeoutError: 1 not done'), ('full', 'OSError: disk full')) False", failed
steps = [json.loads(line) for line in pathlib.Path("shutdown.log").read_text().splitlines()]
assert [line["step"] for line in steps if line["step"] != "stage"][:3] == ["begin", "stop", "drain"], steps
assert not any(line["step"] == "cancel" for line in steps), steps
assert {line["name"]: line["result"] for line in steps if line["step"] == "clean"}["close closed.txt"] == 0, steps
