#!/usr/bin/env python3
"""Batches, over a double of the store and of ComfyUI's queue. Only small values of elements are put together into one
value; if that fails, the values stay as they are, and the batch ends well. The driver keeps no input once the store
has it. A batch with a prefix never runs a finished element again, even if the element gave nothing, if `when` left it
out, if a condition stopped the batch, or if the process was killed. The node "Loop result" reads a port's values as a
list."""
import gc, logging, sys, threading, weakref

from _double_host import Pack, Queue, end_of
from _graphs import node, port
import _state_double
import memstow_loops
import support
from memstow_loops import driver

queue = Queue()
loops = queue.loops
memstow_loops.serve(Pack(queue))
STEP = {"1": port("n"), "2": node("Add", a=["1", 0], b=2), "3": port("n", ["2", 0])}
SAME = {"1": port("v"), "2": port("v", ["1", 0])}
lines = []


class Lines(logging.Handler):
    def emit(self, record):
        lines.append(record.getMessage())


logging.getLogger("memstow").addHandler(Lines())
put, release = _state_double.Store.put, _state_double.Store.release

# A large value has a key of its own, or shares a key with few other values.
chunks = []


def noted_put(store, id, value):
    if id.endswith(":]"):
        chunks.append((len(value[0]), sum(map(len, value[1]))))
    put(store, id, value)


_state_double.Store.put = noted_put
for size, most, keys in ((1 << 20, 32, 12), (12 << 20, 2, 110), (33 << 20, 0, 210)):
    text = "x" * size
    loop = memstow_loops.start_loop([SAME], {"v": [text] * 200}, independent=True)
    assert all(value is not None for value in end_of(loop)["v"])
    assert max((count for count, _size in chunks), default=0) == most, chunks
    assert all(size <= driver.CHUNK_BYTES for _count, size in chunks), chunks
    assert len(loop.store.ids()) <= keys, len(loop.store.ids())
    loops.drop(loop)
    chunks.clear()


# no room for a chunk
def full_put(store, id, value):
    if id.endswith(":]"):
        raise OSError(28, "No space left on device")
    put(store, id, value)


_state_double.Store.put = full_put
loop = memstow_loops.start_loop([STEP], {"n": list(range(200))}, independent=True)
assert end_of(loop) == {"n": list(range(2, 202))} and not loop.failures
assert any("No space left" in line for line in lines), lines
loops.drop(loop)
_state_double.Store.put = put


# the node "Loop result" reads the values of one port. The store has each value alone in a short batch, and chunks of
# values in a long batch
for size in (3, 200):
    queue.fail, expected = {1: "as planted"}, [2, None, *range(4, size + 2)]
    loop = memstow_loops.start_loop([STEP], {"n": list(range(size))}, independent=True)
    assert end_of(loop) == {"n": expected}
    assert loop.committed_values("n") == expected and loop.committed_values("nobody") is None
    loops.drop(loop)
    assert loop.committed_values("n") is None, "it is closed"
queue.fail = {1: "as planted"}
loop = memstow_loops.start_loop([STEP], {"n": [1]}, independent=True)
assert end_of(loop) == {"n": [None]} and loop.committed_values("n") is None
loops.drop(loop)
queue.fail = {}


# inputs
class Value:
    pass


for independent in (False, True):
    given = Value()
    reference = weakref.ref(given)
    seen, is_gone = [], threading.Event()
    # Before each prompt, the queue waits until this test has dropped `given`.
    queue.before = lambda prompt: seen.append((is_gone.wait(60), gc.collect(), reference())[2]) # noqa: B023
    loop = memstow_loops.start_loop([SAME], {"v": [given, Value()] if independent else given}, 2,
                                    independent=independent)
    del given
    is_gone.set()
    end_of(loop)
    gc.collect()
    assert seen[-1] is None and reference() is None, "the driver has the input, beside the store"
    loops.drop(loop)

# run_sequential(), which runs a loop and waits for its end, does not keep the inputs, either. The first iteration runs
# on another thread, and waits there until the inputs are gone.
references = []


def value_for_call():
    value = Value()
    references.append(weakref.ref(value))
    return {"v": value}


def is_let_go():
    gc.collect()
    return references[0]() is None


queue.prompts.clear()
seen.clear()
queue.before = lambda prompt: len(queue.prompts) == 2 and seen.append(support.wait_for(is_let_go, 20, "the end of v"))
if sys.version_info >= (3, 11): # in older Pythons the caller's frame keeps the arguments of a call
    memstow_loops.run_sequential([SAME], value_for_call(), 2)
    assert len(seen) == 1
queue.before = lambda prompt: None


# While the inputs of a batch are put into the store, the batch is asked for its values and cancelled.
def waiting_put(store, id, value):
    putting.set()
    assert may_put.wait(60), "nobody has said go on"
    put(store, id, value)


putting, may_put = threading.Event(), threading.Event()
_state_double.Store.put = waiting_put
queue.prompts.clear()
loop = memstow_loops.start_loop([STEP], {"n": list(range(200))}, independent=True)
assert putting.wait(60)
assert loop.document_and_values()[1] == {"n": [None] * 200}
loop.cancel()
may_put.set()
assert end_of(loop, "cancelled") == {"n": [None] * 200} and not queue.prompts
assert loop.error == "it was cancelled before the first element", loop.error
loops.drop(loop)
_state_double.Store.put = put

# ---- with a prefix
kept = {}


def open_again(name, **_options):
    store = kept.setdefault(name, _state_double.Store(name, ""))
    store.closed, store.open = False, None
    return store


loops.open_store = open_again


def again(name, *workflows, state="done", **options):
    """Starts a batch, or starts the same batch again. Returns the loop, and how many prompts ran."""
    queue.prompts.clear()
    loop = memstow_loops.start_loop(list(workflows), {"n": list(range(100))}, independent=True, name=name,
                                    persist_prefix=name, **options)
    end_of(loop, state)
    loops.drop(loop)
    return loop, len(queue.prompts)


shows = {"1": port("n"), "2": node("Show", value=["1", 0])}
assert [again("no output", shows)[1] for _ in range(2)] == [100, 0]
odd = [lambda values: values["n"] % 2 == 1]
assert [again("left out", STEP, when=odd)[1] for _ in range(2)] == [50, 0]
assert [again("stopped", STEP, condition={"port": "n", "op": ">", "value": 70})[1] for _ in range(3)] == [70, 0, 0]
queue.fail = {50: "as planted"}
for ran, resumed, completed in ((100, 0, 99), (1, 99, 99)):
    loop, prompts = again("failed", STEP)
    assert (prompts, loop.resumed, loop.completed()) == (ran, resumed, completed), loop.document()
queue.fail = {}
assert again("failed", STEP)[1] == 1 and again("failed", STEP)[1] == 0
assert len(kept["failed"].ids()) < 10, kept["failed"].ids()


# The driver is killed while it puts single values together into a chunk: the chunk is in the store already, and the
# single values are still there.
def killed(_store, _id):
    raise SystemExit("killed")


_state_double.Store.release = killed
again("killed", STEP, state="failed")
_state_double.Store.release = release
assert len(kept["killed"].ids()) > driver.CHUNK
loop, ran = again("killed", STEP)
assert ran == 100 - driver.CHUNK - 1, ran
assert len(kept["killed"].ids()) < 10, kept["killed"].ids()
assert again("killed", STEP)[1] == 0
