#!/usr/bin/env python3
"""The driver by itself, over a double of the store and of ComfyUI's queue: the order in which a value is looked up, the
options `when` and `condition`, bounds, batches, failures, cancelling, resuming, and plans that are refused before
anything is queued."""
import threading

from _double_host import MORE, Pack, Queue, end_of
from _graphs import CLASSES, node, port, refused
import _state_double
import memstow_loops
import support
from memstow_loops import InfoClasses, Loops, driver

queue = Queue()
loops = queue.loops


def run(*workflows, inputs=None, iterations=1, **options):
    queue.prompts.clear()
    return memstow_loops.run_sequential(list(workflows), inputs, iterations, **options)


def refused_before(function, *words):
    queue.prompts.clear()
    refused(function, *words)
    assert not queue.prompts and not loops.loops, "something was queued, or is left"


refused(lambda: run({"1": node("Number", value=1)}), "memstow run", "server=")
memstow_loops.serve(Pack(queue))
STEP = {"1": port("n"), "2": node("Add", a=["1", 0], b=2), "3": port("n", ["2", 0])}
assert run(STEP, inputs={"n": 1}, iterations=5) == {"n": 11}
assert len(queue.prompts) == 5 and not loops.loops and not _state_double._open
assert run(STEP, inputs={"n": 1}, iterations=1000, condition={"port": "n", "op": ">=", "value": 10}) == {"n": 11}
assert run(STEP, inputs={"n": 1}, iterations=1000,
           condition=lambda values: values["n"] > 100 and dict(values) == {"n": values["n"]}) == {"n": 101}
loaders = [n["inputs"] for p in queue.prompts for n in p.graph.values() if n["class_type"] == "MemstowLoopLoad"]
generations = {n["generation"] for n in loaders}
assert len(generations) == len(loaders) == 50, "each iteration's loader is another one to the node cache"
assert all(p.fresh == {"1", "2", "3"} and not p.constant for p in queue.prompts) and len(queue.ended) == 3

# A value is looked up in an earlier workflow of the same iteration, then in the last committed iteration, then in the
# inputs. The value of a wire can be read, but it is not carried to the next iteration.
TWICE = {"1": port("n"), "2": node("Add", a=["1", 0], b=["1", 0]), "wire": port("seen", ["2", 0]),
         "3": port("double", ["wire", 0])}
BACK = {"1": port("double"), "4": port("seen"), "2": node("Add", a=["1", 0], b=["4", 0]), "3": port("n", ["2", 0])}
assert run(TWICE, BACK, inputs={"n": 1, "seen": 1}, iterations=3) == {"seen": 14, "double": 14, "n": 15}
assert run({"1": node("Number", value=5), "2": port("x", ["1", 0]), "3": node("Add", a=["2", 0]),
            "4": port("x", ["3", 0])}) == {"x": 6}
# the node cache keeps nodes that depend only on constants. It does not keep the constants, nor ports that pass them on,
# because a node may write into them
run({"1": port("n"), "2": port("k"), "3": node("Add", a=["2", 0]), "4": node("Add", a=["1", 0], b=["3", 0]),
     "5": port("n", ["4", 0])}, inputs={"n": 0, "k": 1}, iterations=3)
assert all(p.constant == {"3"} and p.fresh == {"1", "2", "4", "5"} for p in queue.prompts)
run({"1": port("n"), "2": port("k"), "w": port("n", ["2", 0]), "3": node("Add", a=["w", 0]),
     "4": node("Add", a=["1", 0], b=["3", 0]), "5": port("n", ["4", 0])}, inputs={"n": 0, "k": 1}, iterations=3)
assert all(p.constant == {"3"} and p.fresh == {"1", "2", "w", "4", "5"} for p in queue.prompts)
# `when` gives each workflow a condition. If both conditions hold in one iteration, both workflows run in the order of
# the list. A condition on a port without a value is false
UP, DOWN = ({"1": port("n"), "2": node("Add", a=["1", 0], b=b), "3": port("n", ["2", 0]), "t": node("Text", text=t),
             "4": port("branch", ["t", 0])} for b, t in ((1, "up"), (-10, "down")))
branches = [{"port": "n", "op": "<", "value": 3}, {"port": "n", "op": ">=", "value": 3}]
assert run(UP, DOWN, inputs={"n": 0}, iterations=2, when=branches) == {"n": 2, "branch": "up"}
assert run(UP, DOWN, inputs={"n": 0}, iterations=3, when=branches) == {"n": -7, "branch": "down"}
assert len(queue.prompts) == 4
assert run(UP, DOWN, inputs={"n": 5}, iterations=1,
           when=[lambda values: "branch" in values, None]) == {"n": -5, "branch": "down"}
# a batch
shared = [0]
WRITES = {"1": port("n"), "2": port("m"), "3": node("Add", a=["1", 0], b=2), "4": port("n", ["3", 0]),
          "5": port("m", ["2", 0])}


def write(prompt):
    found = next(n["inputs"] for n in prompt.graph.values()
                 if n["class_type"] == "MemstowLoopLoad" and n["inputs"]["port"] == "m")
    given = loops.find(found["loop"], found["serial"]).load("m")[0]
    assert given == {"x": [0]}, f"an element before has written into it: {given}"
    given["x"][0] = 9


queue.before = write
run(WRITES, inputs={"n": [1, 2, 3], "m": {"x": shared}}, independent=True)
queue.before = lambda prompt: None
assert shared == [0], "a batch writes into what it was given"
assert run(STEP, inputs={"n": [1, 2, 3]}, independent=True) == {"n": [3, 4, 5]}
queue.fail = {2: "as planted"}
assert run(STEP, inputs={"n": [1, 2, 3]}, independent=True) == {"n": [3, None, 5]} and len(queue.prompts) == 3
batch = memstow_loops.start_loop([STEP], {"n": [2, 5]}, independent=True, name="batch")
planted = {"iteration": 1, "error": "iteration 1, workflow 1: node 2 (Add): as planted"}
end_of(batch)
assert batch.document()["failures"] == [planted], batch.document()
batch.close()
queue.fail = {100: "as planted"}
many = memstow_loops.start_loop([STEP], {"n": list(range(200))}, independent=True, name="many")
assert end_of(many) == {"n": [None if n == 100 else n + 2 for n in range(200)]}
assert len(many.store.ids()) < 20, "each value of a large batch has a place in the store, which takes a descriptor"
many.close()
queue.fail = {}
assert run(TWICE, {**BACK, "4": node("Number", value=1)}, inputs={"n": [1, 2]}, independent=True)["n"] == [3, 5]
loops.loops.clear()
for inputs in ({}, {"n": 1}, {"n": []}):
    refused_before(lambda: run(STEP, inputs=inputs, independent=True), "lists of one length")
refused_before(lambda: run({**STEP, "9": port("m"), "8": node("Show", value=["9", 0])}, inputs={"n": [1], "m": [1, 2]},
                           independent=True), "n: 1", "m: 2")

# The message of a failure names the iteration, the workflow and the node. The loop keeps the values of its last
# committed iteration.
queue.fail = {5: "as planted"}
failing = memstow_loops.start_loop([STEP], {"n": 1}, 10, name="failing")
assert end_of(failing, "failed") == {"n": 5}
assert failing.error == "iteration 3, workflow 1: node 2 (Add): as planted", failing.error
assert failing.store.generation == 2
refused(failing.result, "failing", "iteration 3")
queue.fail = {}
refused(lambda: memstow_loops.start_loop([STEP], {"other": 1}, 2, name="failing"), "n")
assert loops.find("failing") is failing and not failing.closed, "a loop that is refused takes nobody's place"


def open_but_not_there(name, **options):
    if options["persist_prefix"] == "../x":
        raise OSError(22, "the prefix leads out of the directory")
    return _state_double.open(name, **options)


loops.open_store = open_but_not_there
refused(lambda: memstow_loops.start_loop([STEP], {"n": 1}, 2, name="failing", persist_prefix="../x"), "leads out")
assert loops.find("failing") is failing and failing.values() == {"n": 5}, "it has taken a place"
refused(lambda: memstow_loops.start_loop([STEP], {"m": 1}, 2, name="failing", persist_prefix="y"), "m")
assert loops.find("failing") is failing and len(_state_double._open) == 1
loops.open_store = _state_double.open
queue.checked = 0
end_of(memstow_loops.start_loop([STEP], {"n": 1}, 2, name="failing")) # the name is free again
assert queue.checked == 1, "the plan that was made before the old loop was closed is made again"
assert failing.closed and loops.remove("failing") and not loops.remove("failing")
# If the values of an iteration cannot be kept, the error names the node, and no value of that iteration is visible. A
# batch goes on with its next element.
queue.before = lambda prompt: setattr(next(iter(_state_double._open.values())), "full", len(queue.prompts) == 3)
queue.prompts.clear()
full = memstow_loops.start_loop([STEP], {"n": 1}, 10, name="full")
assert end_of(full, "failed") == {"n": 5} and full.store.get("n") == 5, full.values()
assert full.error == ("iteration 3, workflow 1: node 3 (DiscomfortPort): the values cannot be kept: "
                      "the disk is full"), full.error
assert loops.remove("full")
assert run(STEP, inputs={"n": [1, 2, 3, 4]}, independent=True) == {"n": [3, 4, None, 6]}
queue.before = lambda prompt: None
# The loop is cancelled while the second of its two workflows runs. No value of that iteration is visible.
second = {"1": port("m"), "2": node("Add", a=["1", 0], b=1), "3": port("m", ["2", 0])}
queue.before = lambda prompt: loops.remove("c") if len(queue.prompts) == 6 else None
queue.prompts.clear()
loop = memstow_loops.start_loop([STEP, second], {"n": 0, "m": 0}, 10, name="c")
assert end_of(loop, "cancelled") == {"n": 4, "m": 2}, loop.values()
assert "iteration 3, workflow 2" in loop.error, loop.error
assert loops.remove("c") and not _state_double._open
queue.before = lambda prompt: None
# The loop is deleted twice while an iteration commits. This iteration counts, and no prompt of a next iteration is
# queued.
committing, may_go_on = threading.Event(), threading.Event()


def waits(before, *arguments):
    committing.set()
    assert may_go_on.wait(60), "nobody has said go on"
    return before(*arguments)


def start_that_waits(method, iterations):
    """Starts a loop whose store waits when this method is called. Returns the loop as soon as the store waits."""
    committing.clear()
    may_go_on.clear()
    queue.prompts.clear()
    double = _state_double.Store
    before = getattr(double, method)
    queue.before = lambda prompt: setattr(double, method, lambda *arguments: waits(before, *arguments))
    loop = memstow_loops.start_loop([STEP], {"n": 1}, iterations, name="waits")
    assert committing.wait(60), f"the loop has not called {method}"
    setattr(double, method, before)
    queue.before = lambda prompt: None
    return loop


for iterations, state in ((10, "cancelled"), (1, "done")):
    loop = start_that_waits("commit", iterations)
    assert loops.remove("waits") and loops.remove("waits") and loop.state == "running"
    may_go_on.set()
    assert end_of(loop, state) == {"n": 3}, loop.values()
    assert loop.store.generation == 1 and loop.error == {
        "cancelled": "iteration 2, workflow 1: it was cancelled", "done": ""}[state], loop.error
    assert loops.remove("waits") and not loops.remove("waits") and not _state_double._open
# The loop is deleted during a slow put of an iteration. Afterwards no value of this iteration is visible.
loop = start_that_waits("put", 10)
assert loops.remove("waits") and not loop.wait(0.2), "the prompt runs, and the loop waits for it"
may_go_on.set()
assert end_of(loop, "cancelled") == {}, loop.values()
assert loop.error == "iteration 1, workflow 1: it was cancelled" and len(queue.prompts) == 1, loop.error
assert loops.remove("waits") and not _state_double._open
# if the next iteration commits while values are read, all values that the reader gets belong to the same iteration
two = {**STEP, "4": port("m"), "5": node("Add", a=["4", 0], b=2), "6": port("m", ["5", 0])}
reading, get_committed = threading.Event(), _state_double.Store.get_committed


def slow_get(store, id, *default):
    """Reads a value. After the first value that the test's own thread reads, waits for a while, so that the loop may
    make its next iteration."""
    found = get_committed(store, id, *default)
    if threading.current_thread() is threading.main_thread() and not reading.is_set():
        reading.set()
        two_loop.wait(0.5)
    return found


queue.prompts.clear()
queue.before = lambda prompt: reading.wait(60) if len(queue.prompts) == 2 else None
two_loop = memstow_loops.start_loop([two], {"n": 1, "m": 1}, 2, name="read")
support.wait_for(lambda: two_loop.completed() == 1, 60, "the first iteration")
_state_double.Store.get_committed = slow_get
entry, values = two_loop.document_and_values()
_state_double.Store.get_committed = get_committed
assert values == {"n": 3, "m": 3} and entry["committed"] == 1, (values, entry)
assert end_of(two_loop) == {"n": 5, "m": 5} and loops.remove("read")
assert two_loop.values() == {} and two_loop.committed_values("n") is None and not two_loop.document()["values"]
queue.before = lambda prompt: None
# Values are read while an iteration replaces them. Each caller gets the last committed values, and may write to them.
replaced, read = threading.Event(), threading.Event()


def wait_in_second_workflow(prompt):
    if len(queue.prompts) == 4:
        replaced.set()
        assert read.wait(60), "nobody has read"


queue.prompts.clear()
queue.before = wait_in_second_workflow
same = {"1": port("v"), "2": port("v", ["1", 0])}
read_loop = memstow_loops.start_loop([same, same], {"v": {"x": [1]}}, 2, name="replaced")
assert replaced.wait(60)
assert "v" in read_loop.store.open, "nothing has replaced it"
for _ in range(2):
    for found in (read_loop.document_and_values()[1]["v"], read_loop.values()["v"], read_loop.committed_values("v")[0]):
        assert found == {"x": [1]}, found
        found["x"].append(2)
read.set()
end_of(read_loop)
assert loops.remove("replaced")
queue.before = lambda prompt: None
# at most one loop of each name runs at a time
gate = threading.Event()
queue.before = lambda prompt: gate.wait(60)
slow = memstow_loops.start_loop([STEP], {"n": 0}, 1, name="slow")
refused(lambda: memstow_loops.start_loop([STEP], {"n": 0}, 1, name="slow"), "slow", "runs already")
gate.set()
end_of(slow)
assert loops.remove("slow")
queue.before = lambda prompt: None
# ended loops do not pile up
for _ in range(driver.MOST_ENDED + 10):
    end_of(memstow_loops.start_loop([STEP], {"n": 0}))
assert len(loops.loops) <= driver.MOST_ENDED + 1 and len(_state_double._open) == len(loops.loops)
loops.close()
refused(lambda: run(STEP, inputs={"n": 0}), "closes")
loops = queue.loops = Loops(queue, _state_double.open)
memstow_loops.serve(Pack(queue))

# A resumed loop goes on after the last generation of its store. It ends at once if the store has all iterations that
# were asked for, or if the loop's condition holds already.
kept = {}


def open_again(name, **options):
    return kept.setdefault(name, _state_double.Store(name, ""))


loops.open_store = open_again
queue.fail = {5: "as planted"}
refused(lambda: run(STEP, inputs={"n": 1}, iterations=10, name="p", persist_prefix="p"), "iteration 3")
queue.fail = {}
kept["p"].closed = False
assert run(STEP, inputs={"n": 1}, iterations=4, name="p", persist_prefix="p") == {"n": 9} and len(queue.prompts) == 2
kept["p"].closed = False
assert run(STEP, iterations=4, name="p", persist_prefix="p") == {"n": 9} and not queue.prompts
kept["p"].closed = False
assert run(STEP, iterations=100, condition={"port": "n", "op": ">", "value": 8}, name="p",
           persist_prefix="p") == {"n": 9} and not queue.prompts
# When a loop is resumed, inputs that differ from its first inputs would be ignored, so they are refused. A call without
# inputs, or with inputs of new ports only, is accepted.
for other in ({"n": 2}, {"n": 1, "k": 1}):
    kept["p"].closed = False
    words = ("'k'",) if "k" in other else ("another value of n", "after iteration 4", "another prefix")
    refused(lambda: run(STEP, inputs=other, iterations=5, name="p", persist_prefix="p"), *words)
kept["p"].closed = False
ADDS = {"1": port("n"), "k": port("k"), "2": node("Add", a=["1", 0], b=["k", 0]), "3": port("n", ["2", 0])}
assert run(ADDS, inputs={"n": 1, "k": 5}, iterations=5, name="p", persist_prefix="p") == {"n": 14}
kept["p"].closed = False
refused(lambda: run(ADDS, inputs={"n": 1, "k": 6}, iterations=6, name="p", persist_prefix="p"), "another value of k")
kept["p"].closed = False
assert run(ADDS, inputs={"k": 5}, iterations=6, name="p", persist_prefix="p") == {"n": 19}
kept["p"].closed = False
refused(lambda: run(STEP, inputs={"n": [1]}, independent=True, name="p", persist_prefix="p"), "no batch")
# inputs that only pickle can express are refused, too
ANY = {"1": port("n"), "s": port("s"), "2": node("Add", a=["1", 0], b=2), "3": port("n", ["2", 0]),
       "4": node("Show", value=["s", 0])}
assert run(ANY, inputs={"n": 1, "s": {1, 2}}, name="q", persist_prefix="q") == {"n": 3}
for other, iterations in (({7, 8}, 0), ({1, 2}, 2)):
    kept["q"].closed = False
    if iterations:
        assert run(ANY, inputs={"n": 1, "s": other}, iterations=2, name="q", persist_prefix="q") == {"n": 5}
    else:
        refused(lambda: run(ANY, inputs={"n": 1, "s": other}, iterations=2, name="q", persist_prefix="q"),
                "another value of s", "leave it out")
# the stored value is of a type that a workflow cannot take
kept["p"].closed = False
refused_before(lambda: run({"1": port("n"), "2": node("Blur", image=["1", 0]), "3": node("ShowImage", image=["2", 0])},
                           iterations=9, name="p", persist_prefix="p"), "workflow 1", "port n", "IMAGE", "int")
# a batch goes on only with its own inputs
queue.fail = {2: "as planted"}
assert run(STEP, inputs={"n": [1, 2, 3]}, independent=True, name="b", persist_prefix="b") == {"n": [3, None, 5]}
queue.fail = {}
for other in ([1, 2, 4], [1, 2, 3, 4], [1, 2]):
    kept["b"].closed = False
    refused(lambda: run(STEP, inputs={"n": other}, independent=True, name="b", persist_prefix="b"),
            "another value of n")
kept["b"].closed = False
refused(lambda: run(STEP, inputs={"n": 1}, name="b", persist_prefix="b"), "has a batch")
kept["b"].closed = False
assert run(STEP, inputs={"n": [1, 2, 3]}, independent=True, name="b", persist_prefix="b") == {"n": [3, 4, 5]}
assert len(queue.prompts) == 1, "of a batch only the element that failed runs again"
loops.open_store = _state_double.open
# A new loop with the prefix of an ended loop, but with other inputs, is refused. The ended loop can still be found.
begun = memstow_loops.start_loop([STEP], {"n": 1}, 2, name="begun", persist_prefix="begun")
assert end_of(begun) == {"n": 5}
refused(lambda: memstow_loops.start_loop([STEP], {"n": 2}, 4, name="other", persist_prefix="begun"), "another value")
assert loops.find("begun") is begun and begun.values() == {"n": 5}
loops.drop(begun)

# plans that cannot work
refused_before(lambda: run(STEP), "workflow 1", "port n", "no value", "inputs")
refused_before(lambda: run(STEP, inputs={"n": 1, "m": 2}), "'m'", "no workflow")
for value in ("1", 1.5, True, None, [1]):
    refused_before(lambda: run(STEP, inputs={"n": value}), "port n", "INT", type(value).__name__)
refused_before(lambda: run({"1": port("s"), "2": node("Sample", latent=["1", 0], sampler="euler", seed=0, steps=1),
                            "3": port("y", ["2", 0])}, inputs={"s": {}}), "port s", "LATENT")
# all INPUTs of an id are checked, not only the last one
upper = {"1": port("x"), "2": node("Text", text=["1", 0]), "3": port("y", ["2", 0])}
adds = {"1": port("x"), "2": node("Add", a=["1", 0]), "3": port("z", ["2", 0])}
for workflows in ((adds, upper), (upper, adds)):
    for value in (1, "a"):
        refused_before(lambda: run(*workflows, inputs={"x": value}), "port x", type(value).__name__,
                       f"workflow {1 + (workflows[0] is (upper if value == 'a' else adds))}")
refused_before(lambda: run({"1": port("c"), "2": node("Sample", sampler=["1", 0]), "3": port("y", ["2", 0])},
                           inputs={"c": "other"}), "port c", "choices")
refused_before(lambda: run(STEP,
                           {"1": port("n"), "2": node("Blur", image=["1", 0]), "3": node("ShowImage", image=["2", 0])},
                           inputs={"n": 1}), "workflow 2", "IMAGE", "workflow 1", "INT")
refused_before(lambda: run({"1": port("n"), "2": node("Blur", image=["1", 0]), "3": node("Add", a=1),
                            "4": port("n", ["3", 0]), "5": port("b", ["2", 0])}, inputs={"n": 1}), "IMAGE", "INT",
               "port n")
for iterations in (0, -1, None, 1.5, True, "3", float("inf"), 10**9):
    refused_before(lambda: run(STEP, inputs={"n": 1}, iterations=iterations), "without a bound")
refused_before(lambda: run(STEP, inputs={"n": 1}, condition={"port": "z", "op": "==", "value": 1}), "port z")
refused_before(lambda: run(STEP, inputs={"n": 1}, when=[None, None]), "when")
refused_before(lambda: run({"1": node("Number", value=1)}), "no output")
refused_before(lambda: run({"1": node("Add", a=["2", 0]), "2": node("Add", a=["1", 0]), "3": port("x", ["1", 0])}),
               "cycle")
refused_before(lambda: run(), "at least one")
refused_before(lambda: run("nobody"), "nobody")
MODEL = {**CLASSES, "Load": {"input": {}, "output": ["MODEL"]}}
queue.classes = InfoClasses(MODEL)
for options, word in (({"use_ram": False}, "use_ram=False"), ({"persist_prefix": "p"}, "persist_prefix")):
    refused_before(lambda: run({"1": node("Load"), "2": port("model", ["1", 0])}, **options), "port model", "MODEL",
                   word)

# a new loop may take the prefix of an ended loop, also under another name
prefixed = memstow_loops.start_loop([STEP], {"n": 1}, 2, persist_prefix="again")
assert end_of(prefixed) == prefixed.result() == {"n": 5}
another = memstow_loops.start_loop([STEP], {"n": 1}, 2, persist_prefix="again")
end_of(another)
assert prefixed.closed and loops.find(prefixed.name) in (None, another)
loops.drop(another)

# texts that no editor writes
for damaged in ({"nodes": [{"id": 1, "type": "Add", "inputs": "s"}], "links": []}, {"nodes": 5, "links": []},
                {"nodes": [{"id": 1, "type": "Add", "widgets_values": 7}], "links": [[1, 2]]}):
    refused(lambda: memstow_loops.discover_ports(damaged, MORE), "")
