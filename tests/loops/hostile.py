#!/usr/bin/env python3
"""Hostile names, ids and values, over a double of the store and of ComfyUI's queue. An id or a name is refused if it
contains a control character (such as a line break or NUL) or a lone surrogate. An id is also refused if it begins like
memstow's own ids. The message about an id names the node. A value that looks like the driver's own list of outputs is
carried as it is. In an id, `/`, brackets and a colon have no special meaning. A node class whose own code fails gives
an error that names the class. The cost of an element does not grow with the size of its batch. The log tells of a loop
that takes long."""
import time, types

from _double_host import Pack, Queue, end_of, logged
from _graphs import node, port, refused
import _state_double
import memstow_loops
from memstow_loops import driver

queue = Queue()
loops = queue.loops
memstow_loops.serve(Pack(queue))


def counter(id):
    return {"1": port(id), "2": node("Add", a=["1", 0], b=1), "3": port(id, ["2", 0])}


def run(workflow, **options):
    return memstow_loops.run_sequential([workflow], **options)


def begins_nothing(function, *words):
    """Asserts that the function is refused with these words, and that no loop began."""
    queue.prompts.clear()
    refused(function, *words)
    assert not queue.prompts and not loops.loops and not _state_double._open, "something began"


# ids
for id, words in (("a\nb", "control character"), ("a\x00b", "control character"), ("\x7f", "control character"),
                  ("\x9b2J", "control character"),
                  ("\ud800", "half of a character"), ("x" * 2**20, "bytes"), ("ä" * 100, "bytes"),
                  ("memstow: the inputs", "memstow's own"), (" memstow:x", "memstow's own"), ("  ", "not empty"),
                  (7, "a text"), (None, "a text"), (["1", 0], "a text"), ({"a": 1}, "a text")):
    graph = counter("n") | {"4": port(id, ["2", 0])}
    begins_nothing(lambda: run(graph, inputs={"n": 1}), "node 4 (DiscomfortPort)", words)
for id in ("a/b", "../../x", "n[0]", "n[0:64]", "n (seen)", "%2F", "ä" * 80, ".", "state:n/n"):
    assert run(counter(id), inputs={id: 1}, iterations=3) == {id: 4}
    assert run(counter(id), inputs={id: [1, 2]}, independent=True) == {id: [2, 3]}
# one id looks like the key under which an element of the other id is stored
both = {**counter("n[0]"), "4": port("n"), "5": node("Add", a=["4", 0], b=10), "6": port("n", ["5", 0])}
assert run(both, inputs={"n": [1, 2], "n[0]": [5, 6]}, independent=True) == {"n[0]": [6, 7], "n": [11, 12]}
seen = {"1": port("n"), "2": node("Add", a=["1", 0], b=1), "3": port("n (seen)", ["2", 0])}
wire = {"1": node("Number", value=7), "2": port("n", ["1", 0]), "3": node("Show", value=["2", 0])}
found = memstow_loops.run_sequential([seen, wire], {"n": 1}, 2)
assert found == {"n (seen)": 2, "n": 7}, found

# names of loops
for name, words in (("a\nb", "control character"), ("a\0b", "control character"), ("\udfff", "half of a character"),
                    ("x" * 2**20, "characters"), ("語" * 50, "bytes"), (7, "a text"), (None, "a text")):
    begins_nothing(lambda: memstow_loops.start_loop([counter("n")], {"n": 1}, name=name), "name", words)
for name in ("a/b", "..", "%s %d", "語" * 40, "<script>"):
    assert end_of(memstow_loops.start_loop([counter("n")], {"n": 1}, name=name)) == {"n": 2}
    assert loops.remove(name)

# The author of a workflow cannot begin a new line of the log by line breaks in a title.
titled = counter("n") | {"4": {**port("", ["2", 0]), "_meta": {"title": "a\nmemstow: b\u2028c"}}}
begins_nothing(lambda: run(titled, inputs={"n": 1}), "“a memstow: b c”")

# values that look like the driver's own
same = {"1": port("v"), "2": port("v", ["1", 0])}
for value in ({driver.SEVERAL: 7}, {driver.SEVERAL: "text"}, {driver.SEVERAL: None, "more": 1}, {driver.SEVERAL: {}},
              {driver.BEGUN: 1}, [], {}, "", float("inf"), None):
    assert run(same, inputs={"v": value}, iterations=2) == {"v": value}, value

# classes whose own code fails
class Broken:
    @classmethod
    def INPUT_TYPES(cls):
        raise RuntimeError("its folder is gone")


refused(lambda: memstow_loops.discover_ports({"1": node("Broken")}, memstow_loops.ClassesHere({"Broken": Broken})),
        "node class Broken", "RuntimeError", "its folder is gone")

# documents with wrong values in them
for graph in ({"1": []}, {"1": {"class_type": []}}, {"1": {"class_type": "Add", "inputs": []}}, {"prompt": []},
              {"1": 7}, {"nodes": {}}, {"nodes": [[]], "links": []},
              {"nodes": [{"id": {}, "type": "Add"}], "links": []},
              {"nodes": [{"id": 1, "type": ["Add"]}], "links": [[]]}, {"nodes": [7], "links": 7},
              {"nodes": [], "links": [], "definitions": []},
              {"nodes": [{"id": 1, "type": "s"}], "links": [], "definitions": {"subgraphs": [{"id": "s"}]}},
              {**counter("n"), "2": node("Add", a=["1", -1], b=1)},
              {**counter("n"), "4": {**port("", ["2", 0]), "_meta": [1]}}):
    begins_nothing(lambda: run(graph, inputs={"n": 1}), "")
for inputs in ([1], "n", 7, {"n": []}, {"n": {}}, {"n": "x" * 1000}):
    begins_nothing(lambda: memstow_loops.start_loop([counter("n")], inputs), "")
for iterations in ("x", None, -5, 0, True, 1.0): # a batch ignores the number, but not a wrong one
    for independent, n in ((False, 1), (True, [1, 2])):
        begins_nothing(lambda: run(counter("n"), inputs={"n": n}, iterations=iterations, independent=independent),
                       "iterations is a whole number from 1")
for condition in (7, "n > 1", [], ["n"], {}, {"port": 7, "op": "==", "value": 1}, {"port": "n", "op": 7, "value": 1},
                  {"port": "n", "op": "__import__", "value": 1}, {"port": "n", "op": "==", "value": {}},
                  {"port": "n", "op": "==", "value": [[1]]}, {"port": "n", "op": "==", "value": 1, "more": 1}):
    begins_nothing(lambda: run(counter("n"), inputs={"n": 1}, condition=condition), "condition")
    begins_nothing(lambda: run(counter("n"), inputs={"n": 1}, when=[condition]), "condition")
refused(lambda: run(counter("n"), inputs={"n": 1}, condition={"port": "n", "op": "in", "value": 5}), "op in", "list")
nan = float("nan")
assert run(counter("n"), inputs={"n": 1}, iterations=3, condition={"port": "n", "op": "<", "value": nan}) == {"n": 4}

# a store that does not open is one clear error, too

def busy(*_arguments, **_options):
    raise OSError(16, "another loop has the prefix")


open_store, loops.open_store = loops.open_store, busy
begins_nothing(lambda: run(counter("n"), inputs={"n": 1}, persist_prefix="p"), "another loop has the prefix")
loops.open_store = open_store

# a larger batch reads and lists hardly more values for each element than a small one
def asked_for(size):
    asked = [0]

    def counted(before):
        def call(store, *arguments):
            found = before(store, *arguments)
            asked[0] += len(found) if isinstance(found, list) else 1
            return found
        return call

    before = {name: getattr(_state_double.Store, name) for name in ("get", "info", "put", "ids")}
    for name, function in before.items():
        setattr(_state_double.Store, name, counted(function))
    loop = memstow_loops.start_loop([counter("n")], {"n": list(range(size))}, independent=True)
    assert loop.wait(60)
    for name, function in before.items():
        setattr(_state_double.Store, name, function)
    assert end_of(loop) == {"n": list(range(1, size + 1))}
    loops.drop(loop)
    return asked[0] / size


assert asked_for(driver.CHUNK * 40) <= asked_for(driver.CHUNK * 2) * 1.5

# a loop that takes long writes only a few lines to the log
lines = logged()
driver.time = types.SimpleNamespace(time=time.time, time_ns=time.time_ns,
                                    monotonic=lambda: len(queue.prompts) * driver.PROGRESS_SECONDS / 4)
queue.prompts.clear()
end_of(memstow_loops.start_loop([counter("n")], {"n": 0}, 12, name="long"))
assert [line for line in lines if "of 12 iterations" in line] == [
    "memstow: loop long: 4 of 12 iterations", "memstow: loop long: 8 of 12 iterations",
    "memstow: loop long: done after 12 of 12 iterations"], lines
# an error of a node is made into one line that can be written to the log, whatever characters the error has
from memstow_loops.graph import one_line # noqa: E402
assert one_line("a\ud800b\nc") == "a\\ud800b c"
