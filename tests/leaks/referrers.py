"""memstow.held() and the node pack say what holds an object, by names that can be looked up in the source. The search
takes few objects at a time, so that Python does not stand still. It ends when its time is over. A program can also name
holders itself."""
import gc, pathlib, sys

import support
from _leaks import leaks

sys.path.insert(0, str(support.ROOT / "tools/python"))
import memstow_referrers as referrers # noqa: E402


class Model:
    pass


class Cache:
    shared: dict = {}

    def __init__(self):
        self.kept = {}


def make(place):
    """A model that lies only at that place."""
    model = Model()
    place(model)
    return model


def holders(target, ignored, deadline=None):
    """The holders in words, without the variables of this function."""
    found, _ = referrers.find([target], {*ignored, id(sys._getframe())}, deadline, all_of_them=True)
    return [holder.words for holder in found[0]]


def held(place):
    """Puts a new model at this place. Returns the holders of the model, without the list in this function."""
    models = [make(place)]
    return holders(models[0], {id(models), id(sys._getframe())})


def closure(model):
    return lambda: model


table, callbacks, cache = {}, [], Cache()
name = __name__
assert held(lambda model: table.update(unet=[0, model])) == [f"{name}.table['unet'][1]"], "in a module's table"
assert held(lambda model: cache.kept.update(it=model)) == [f"{name}.cache → Cache.kept['it']"], "in an attribute"
[line] = held(lambda model: callbacks.append(closure(model)))
assert line.startswith(f"{name}.callbacks[0]") and "closure" in line, line
[line] = held(lambda model: Cache.shared.update(x=model))
assert line.startswith(f"{name}.Cache") and line.endswith("['x']"), line
assert held(lambda model: None) == [], "nobody"

# Thousands of objects without a name hold the object. A list that contains itself keeps them, so the search never
# finds a name. The number of objects that are searched at once is limited nevertheless.
asked, original = [], gc.get_referrers


def counting(*things):
    asked.append(len(things))
    return original(*things)


def hide(model):
    chain = [[model] for _ in range(3000)]
    for _ in range(8):
        chain = [[one] for one in chain]
    chain.append(chain)


model = Model()
gc.disable()
hide(model)
here = [model]
del model
gc.get_referrers = counting
for seconds in (0.3, 60):
    found = holders(here[0], {id(here), id(sys._getframe())}, referrers.Deadline(seconds))
    assert found and all(line.startswith("an object of type builtins.") for line in found), found
gc.get_referrers = original
assert asked[0] == 1 and max(asked) <= referrers.AT_ONCE and len(asked) > 2, asked

# The search takes no longer than it may, and its answer fits into a line of the trace.
gc.get_referrers = counting
del asked[:]
assert holders(here[0], {id(here)}, referrers.Deadline(-1)) == [] and not asked, asked
gc.get_referrers = original
lines = referrers.for_trace(["a", "a", "b" * 1000, *("\u2028" * 1000 + str(i) for i in range(20))])
assert lines[:2] == ["a", "b" * 300] and len(lines) == 3, lines
assert referrers.for_trace(map(str, range(20))) == list("01234567")

# ---- a program that asks what holds the memory that its owners left

PROGRAM = pathlib.Path("program.py")
PROGRAM.write_text(f"""
import os, sys, weakref
sys.path.insert(0, {str(support.ROOT / "tools/python")!r})
import memstow
class Weights:
    def __init__(self):
        self.buffer = bytearray(300_000)
class Cache:
    kept = {{}}
def load(number):
    owner = memstow.owner("UNET", origin="tiny.safetensors")
    with memstow.scope(owner):
        Cache.kept[number] = Weights()
    return owner, weakref.ref(Cache.kept[number])
def look(owner, weights):
    owner.retire()
    there = weights()
    print(memstow.held(owner, there, there.buffer), flush=True)
    assert memstow.held(owner) == [] == memstow.held(owner, there, seconds=-1)
for number in range(3):
    with memstow.run(str(number)):
        owner, weights = load(number)
    look(owner, weights)
os._exit(0)
""")
expected = [[f"__main__.Cache.kept[{number}]", f"__main__.Cache.kept[{number}] → Weights.buffer"]
            for number in range(3)]
said = support.track(support.PYTHON, PROGRAM).stdout.splitlines()
print(said)
[gone] = leaks("out.mst", status=1)["retired"]
assert gone["leak"] and gone["holders"] == eval(said[-1]) and gone["owners"] == 3, gone
assert [eval(line) for line in said] == expected, said
assert support.run(support.PYTHON, PROGRAM,
                   status=None).stdout.splitlines()[0] == "[]", "without memstow it says nothing"
