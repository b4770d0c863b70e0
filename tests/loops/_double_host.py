"""Doubles of ComfyUI's queue and of the node pack, for tests of the driver."""
import functools, logging

from _graphs import CLASSES
import _state_double
from memstow_loops import InfoClasses, Loops, Outcome

MORE = {**CLASSES, "MemstowLoopLoad": {"input": {}, "output": ["*"]},
        "MemstowLoopSave": {"input": {}, "output": ["*"], "output_node": True}}

BLOCKER = "what a node gives to block those after it"


class Queue:
    """Computes prompts as ComfyUI would, without a cache, one after the other, on the calling thread."""

    def __init__(self):
        self.classes, self.prompts, self.ended, self.fail = InfoClasses(MORE), [], [], {}
        self.blocked = set() # values at which Add blocks the nodes after it, as with ComfyUI's ExecutionBlocker
        self.before = lambda prompt: None
        self.saved, self.at = [], "" # at: the node that an interrupt meets
        self.checked = 0
        self.loops = Loops(self, _state_double.open)

    def check(self, prompt):
        self.checked += 1

    def end(self, serial):
        self.ended.append(serial)

    def run(self, prompt, cancelled):
        self.prompts.append(prompt)
        self.before(prompt)
        if cancelled.is_set():
            return Outcome("cancelled", self.at)

        @functools.cache
        def value(node_id):
            n = prompt.graph[node_id]
            given = {k: value(v[0])[v[1]] if isinstance(v, list) else v for k, v in n["inputs"].items()}
            kind = n["class_type"]
            if BLOCKER in given.values():
                return (BLOCKER,)
            if kind == "Add":
                if given["a"] in self.fail:
                    raise ValueError(self.fail[given["a"]])
                if given["a"] in self.blocked:
                    return (BLOCKER,)
                return (given["a"] + given.get("b", 1),)
            if kind == "MemstowLoopLoad":
                return (self.loops.find(given["loop"], given["serial"]).load(given["port"])[0],)
            if kind == "MemstowLoopSave":
                self.loops.find(given["loop"], given["serial"]).save(given["port"], [given["value"]])
                return (given["value"],)
            return (given.get("value", given.get("text", given.get("input_data"))),)

        for node_id in prompt.graph:
            try:
                value(node_id)
            except ValueError as error:
                return Outcome("failed", node_id, str(error))
        return Outcome("ok")


class Pack:
    """The node pack, over a queue."""

    def __init__(self, queue):
        self.loops = queue.loops

    def saved(self, name):
        raise ValueError(f"there is no saved workflow {name!r}")

    def may_wait(self):
        return ""

    def may_start(self):
        return ""


def end_of(loop, state="done"):
    """Waits for the end of a loop, which must end in this state. Returns its values."""
    assert loop.wait(60), f"the loop {loop.name} has not ended within 60 s"
    assert loop.state == state, (loop.name, loop.state, loop.error)
    return loop.values()


def logged():
    """A list that gets the lines of memstow's log from now on."""
    lines, handler = [], logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("memstow").addHandler(handler)
    logging.getLogger("memstow").setLevel(logging.INFO)
    return lines
