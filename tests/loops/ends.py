#!/usr/bin/env python3
"""How loops end, over a double of the store and of ComfyUI's queue. If a run is interrupted, if ComfyUI refuses a
prompt, or if a node blocks an OUTPUT, the message names iteration, workflow and node. If an input cannot be kept, the
message names the input. If a condition raises SystemExit, or an exception whose text cannot be had, the loop fails with
a message that says so. A loop that is closed while its node still runs counts as cancelled. A loop that gets no thread
leaves nothing behind. Only a loop's own prompts reach it, no loop starts on the server's thread, and the log tells of a
run that takes long."""
import threading, types

from _double_host import Pack, Queue, end_of, logged
from _graphs import node, port, refused
import _state_double
import memstow_loops
from memstow_loops import driver

queue = Queue()
loops = queue.loops
pack = Pack(queue)
memstow_loops.serve(pack)
STEP = {"1": port("n"), "2": node("Add", a=["1", 0], b=2), "3": port("n", ["2", 0])}
lines = logged()


def start(*workflows, inputs=None, iterations=3, **options):
    queue.prompts.clear()
    return memstow_loops.start_loop(list(workflows), inputs or {"n": 1}, iterations, name="x", **options)


def ended(loop, state, error):
    """Asserts how the loop ended. Returns its values."""
    values = end_of(loop, state)
    assert loop.error == error, loop.error
    assert loops.remove("x") and not _state_double._open
    return values


# the process may have no more threads
def no_thread(_loop):
    raise RuntimeError("can't start new thread")


real_start, driver.Loop.start = driver.Loop.start, no_thread
refused(lambda: start(STEP), "loop x gets no thread", "can't start")
driver.Loop.start = real_start
assert not loops.loops and not _state_double._open
ended(start(STEP), "done", "")


# a condition raises SystemExit, which is no Exception
def leaves(_values):
    raise SystemExit("as planted")


ended(start(STEP, condition=leaves), "failed", "iteration 1: SystemExit: as planted")

# a condition raises an exception whose text cannot be had
class Mute(Exception):
    def __str__(self):
        raise SystemExit("as planted")


def mute(_values):
    raise Mute


ended(start(STEP, condition=mute), "failed", "iteration 1: Mute: the exception's text cannot be read: SystemExit")

# interrupted, and deleted: the node is named
queue.before = lambda prompt: loops.remove("x") if len(queue.prompts) == 2 else None
queue.at = "2"
assert ended(start(STEP), "cancelled", "iteration 2, workflow 1: node 2 (Add): it was cancelled") == {"n": 3}
queue.at = ""


# ComfyUI refuses a later prompt
def refuses(prompt):
    if len(queue.prompts) == 2:
        raise memstow_loops.LoopError("ComfyUI refuses it: node 2 (Add): a.png is gone")


queue.before = refuses
assert ended(start(STEP), "failed",
             "iteration 2, workflow 1: ComfyUI refuses it: node 2 (Add): a.png is gone") == {"n": 3}
queue.before = lambda prompt: None

# an input that cannot be put
put = _state_double.Store.put
_state_double.Store.put = lambda store, id, value: (_ for _ in ()).throw(OSError(28, "No space left on device"))
ended(start(STEP), "failed", "iteration 1, input n: the values cannot be kept: [Errno 28] No space left on device")
_state_double.Store.put = put

# closed while a node runs that no interrupt reaches
running, may_end = threading.Event(), threading.Event()
queue.before = lambda prompt: running.set() or may_end.wait(60)
loop = start(STEP)
assert running.wait(60)
loop.close(0)
may_end.set()
queue.before = lambda prompt: None
ended(loop, "cancelled", "iteration 1, workflow 1: it was cancelled")

# A node that blocks an OUTPUT is an error, because otherwise the port would keep the value of the iteration before.
queue.blocked = {3}
words = "node 3 (DiscomfortPort): nothing came into it: a node before it has blocked it"
assert ended(start(STEP), "failed", f"iteration 2, workflow 1: {words}") == {"n": 3}
again = {"1": port("n"), "2": node("Add", a=["1", 0], b=0), "3": port("n", ["2", 0])}
assert ended(start(STEP, again), "failed", f"iteration 1, workflow 2: {words}") == {}, "another workflow's value counts"
batch = start(STEP, inputs={"n": [1, 3, 5]}, independent=True)
batch.wait(60)
assert batch.failures == [{"iteration": 2, "error": f"iteration 2, workflow 1: {words}"}], batch.failures
assert ended(batch, "done", "") == {"n": [3, None, 7]}
queue.blocked = set()

# a node's message cannot begin a line in the log
queue.fail = {1: "as planted\nmemstow: loop x: done"}
ended(start(STEP), "failed", "iteration 1, workflow 1: node 2 (Add): as planted\nmemstow: loop x: done")
assert lines and not any("\n" in line for line in lines), lines
queue.fail = {}

# a loader or saver finds the loop only in prompts of this loop
queue.before = lambda prompt: (loops.find("x") and not loops.find("x", "")) or (_ for _ in ()).throw(AssertionError)
ended(start(STEP), "done", "")
queue.before = lambda prompt: None

# on the server's thread
pack.may_start = lambda: "this thread is the server's"
refused(lambda: start(STEP), "server's")
pack.may_start = lambda: ""

# a run that takes long
clock = [0.0]
driver.time = types.SimpleNamespace(time=lambda: clock[0], time_ns=lambda: 0, monotonic=lambda: clock[0])


def takes_long(prompt):
    for _ in range(100): # as the host, which looks again and again
        clock[0] += driver.PROGRESS_SECONDS / 50
        prompt.tell()


queue.before = takes_long
ended(start(STEP, iterations=1), "done", "")
told = [line for line in lines if line.endswith("runs")]
assert told == ["memstow: loop x: 0 of 1 iterations, and workflow 1 runs"] * 2, lines
