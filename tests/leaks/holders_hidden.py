# needs: pip:numpy
# timeout: 200
"""Holders that Python's garbage collector does not lead to: the variable of a context, a timer that waits to call a
function, and an array of objects, which the collector does not look into. The module that has the variable, the
function or the array is named, not the library in between."""
import pathlib

from _leaks import brief, functions, leaks, waiting

RUNS, SIZE = 12, 40_000
KEEPERS = {
    "context": """
import contextvars
kept = contextvars.ContextVar("kept", default=())
others = [contextvars.ContextVar(f"other {number}") for number in range(40)]
for number, other in enumerate(others):
    other.set(number)
def keep(thing, run):
    kept.set((*kept.get(), thing))
""",
    "timer": """
import threading
def later(thing):
    pass
def keep(thing, run):
    timer = threading.Timer(100_000, later, (thing,))
    timer.daemon = True
    timer.start()
""",
    "array": """
import numpy
kept = numpy.empty((10, 10), dtype=object)
def keep(thing, run):
    kept[run % 10, run // 10] = thing
""",
    "array_of_lists": """
import numpy
kept = numpy.empty(100, dtype=object)
def keep(thing, run):
    kept[run] = [thing]
"""}
PLACES = {"context": "keep_context.kept", "timer": "threading.Timer that calls keep_timer.later",
          "array": "keep_array.kept", "array_of_lists": "keep_array_of_lists.kept"}

for name, source in KEEPERS.items():
    pathlib.Path(f"keep_{name}.py").write_text(source)
pathlib.Path("maker.py").write_text("".join(f"def make_{name}():\n    return bytearray({SIZE})\n" for name in KEEPERS))
program = waiting(f"""
import importlib
import maker, memstow
keepers = {{name: importlib.import_module(f"keep_{{name}}") for name in {list(KEEPERS)!r}}}
for run in range({RUNS}):
    with memstow.run(f"run {{run}}"):
        for name, keeper in keepers.items():
            keeper.keep(getattr(maker, f"make_{{name}}")(), run)
""")
document = leaks(program.pid(), "--holders", status=1)
found = {name.removeprefix("make_"): leak for leak in document["leaks"] for name in functions(leak["stack"])
         if name.startswith("make_")}
assert found.keys() == KEEPERS.keys(), brief(document)
for name, leak in found.items():
    assert leak["held_by"] == f"keep_{name}", (name, leak["held_by"], leak["holders"])
    assert leak["held_at"] == PLACES[name], (name, leak["held_at"], leak["holders"])
for name in ("array", "array_of_lists"): # with the index
    assert found[name]["holders"][0].startswith(f"keep_{name}.kept["), found[name]["holders"]
program.end()
