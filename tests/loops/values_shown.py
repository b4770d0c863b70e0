#!/usr/bin/env python3
"""GET /memstow/loops shows each value as JSON that any JSON reader accepts. A description stands in place of a number
that JSON does not have, a list that contains itself, a very deep or very large value, and an object whose code raises.
If the store cannot give a value, the answer is 503 with the reason."""
import asyncio, importlib, json, math, sys, types

import support

for name, folder in (("pack", ""), ("pack.loops", "loops")): # the module alone, without the packages that it is in
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(support.ROOT / "tools/comfyui" / folder)]
routes = importlib.import_module("pack.loops.routes")


class Array:
    shape, dtype = (2, 3), "float32"


class Raises:
    @property
    def shape(self):
        raise RuntimeError("no shape")


def shown(value):
    return json.loads(json.dumps(routes.plain(value), allow_nan=False))


def innermost(value):
    while isinstance(value, list):
        value = value[0]
    return value


same = [None, True, 0, -2**70, 1.5, "\udc80\0", [], {}, [1, ["x"]], {"a": {"b": [None]}}]
assert shown(same) == same
assert shown((1, (2,))) == [1, [2]]
assert [shown(value)["text"] for value in (math.nan, math.inf, -math.inf)] == ["nan", "inf", "-inf"]
assert shown({"huge": 10**5000}) == {"huge": {"not_json": "int", "bits": 16610}}
assert shown([Array(), Raises(), {1: 2}]) == [{"not_json": "Array", "shape": [2, 3], "dtype": "float32"},
                                              {"not_json": "Raises"}, {"not_json": "dict"}]
endless, deep, shared = [], [], [0]
endless.append(endless)
for _ in range(5000):
    deep = [deep]
for _ in range(60):
    shared = [shared, shared]
for value in (endless, deep):
    assert innermost(shown(value)) == {"not_json": "list"}
routes.MOST_PARTS = 1000 # without this, the test takes a second
assert len(json.dumps(shown([shared, "x"]))) < 50_000
assert shown([0] * 5000) == {"not_json": "list"}


# From here on, the store cannot give a value. ComfyUI's server, aiohttp and the loops are doubles.
handlers = {}


def method(name):
    return lambda path: lambda handler: handlers.setdefault(f"{name} {path}", handler)


class Stuck:
    """A double of a loop whose memory is moved at the moment."""

    def document(self):
        raise OSError(16, "its memory is being moved")

    document_and_values = document


table = types.SimpleNamespace(get=method("GET"), post=method("POST"), delete=method("DELETE"))
stuck = types.SimpleNamespace(loops={"x": Stuck()}, find=lambda name: Stuck())
web = types.SimpleNamespace(Response=lambda status, text: (status, text))
sys.modules["aiohttp"] = types.SimpleNamespace(web=web)
sys.modules["server"] = types.SimpleNamespace(
    PromptServer=types.SimpleNamespace(instance=types.SimpleNamespace(routes=table)))
routes.install(types.SimpleNamespace(loops=stuck), types.SimpleNamespace(wire=None, LoopError=ValueError))
for query in ({}, {"name": "x"}, {"name": "x", "values": "1"}, {"name": "x", "values": "raw"}):
    answer = asyncio.run(handlers["GET /memstow/loops"](types.SimpleNamespace(query=query, headers={})))
    assert answer == (503, "[Errno 16] its memory is being moved"), (query, answer)
