"""Who holds an object, as the node pack says it: names that can be looked up in the source, and never so many objects looked for
at once that Python stands still meanwhile."""
import gc, sys

import support
sys.path.insert(0, str(support.ROOT / "tools/comfyui"))
import referrers # noqa: E402


class Model:
    pass


class Cache:
    shared: dict = {}

    def __init__(self):
        self.kept = {}


def make(place):
    """A model that lies at the place only."""
    model = Model()
    place(model)
    return model


def held(place):
    """Who holds it: the list is nobody's but this function's."""
    models = [make(place)]
    return referrers.holders(models[0], {id(models), id(sys._getframe())})


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

# Thousands hold it, and nobody whose name could be found: what is asked for at once is bounded all the same.
asked, original = [], gc.get_referrers


def counting(*things):
    asked.append(len(things))
    return original(*things)


def hide(model):
    chain = [[model] for _ in range(3000)]
    for _ in range(8):
        chain = [[one] for one in chain]
    return iter(chain)


model = Model()
hidden, here = hide(model), [model]
del model
gc.get_referrers = counting
found = referrers.holders(here[0], {id(here), id(sys._getframe())})
gc.get_referrers = original
assert asked[0] == 1 and max(asked) <= referrers.AT_ONCE and len(asked) > 2, asked
assert found and all(line.startswith("an object of type builtins.") for line in found), found
