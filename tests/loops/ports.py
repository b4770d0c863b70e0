#!/usr/bin/env python3
"""discover_ports finds the mode of each port from the port's connections, and its type from its consumers and
producers, also if other ports are between. It also finds the tags of each port and the order of execution. A warning
names consumers that disagree about the type, or about the choices of a list. Cycles, unknown classes, ports without id
or connections, and two ports of one id and mode are errors, which name the nodes. The caller's document is not
changed."""
import copy, json

from _graphs import CLASSES, described, node, port, refused
import memstow_loops
from memstow_loops.values import check_value

LOOP = {"in": port("x", tags="number, , carried"), "add": node("Add", a=["in", 0], b=1),
        "wire": port("seen", ["add", 0]), "again": node("Add", a=["wire", 0], b=["wire", 0]),
        "out": port("x", ["again", 0]), "image": port("picture"), "blur": node("Blur", image=["image", 0], radius=1.0),
        "mask": node("Encode", pixels=["blur", 0], mask=["image", 0]), "latent": port("latent", ["mask", 0])}


def ports(graph, classes=CLASSES):
    return memstow_loops.discover_ports(graph, classes)


before = copy.deepcopy(LOOP)
found = ports(LOOP)
assert LOOP == before
assert {(p.node, p.id, p.mode, p.type, p.tags)
        for p in found.ports} == {("in", "x", "INPUT", "INT", ("number", "carried")),
                                  ("wire", "seen", "PASSTHRU", "INT", ()), ("out", "x", "OUTPUT", "INT", ()),
                                  ("image", "picture", "INPUT", "IMAGE", ()),
                                  ("latent", "latent", "OUTPUT", "LATENT", ())}, found.ports
assert set(found.order) == set(LOOP) and not found.warnings
places = {name: number for number, name in enumerate(found.order)}
assert all(places[value[0]] < places[name] for name,
           n in LOOP.items() for value in n["inputs"].values() if isinstance(value, list))
assert set(found.shown()) == {"seen", "x", "latent"} and found.shown()["x"].mode == "OUTPUT"
assert json.loads(json.dumps(found.document()))["ports"][0].keys() == {"node", "id", "mode", "tags", "type"}
# ids as numbers, the prompt of a request, JSON text
numbers = {"prompt": {1: port("x"), "2": port("y", [1, 0])}}
assert [p.mode for p in ports(numbers).ports] == ["INPUT", "OUTPUT"]
named = {"prompt": node("Number", value=1), "out": port("y", ["prompt", 0])} # a node with the id "prompt"
for graph in (named, {"prompt": named}):
    assert [(p.id, p.type) for p in ports(graph).ports] == [("y", "INT")], graph
assert ports(json.dumps({"1": port("x"), "2": port("y", ["1", 0])})).ports[1].type == "*"
# through several wires, to a class with choices
chain = {"1": port("a"), "2": port("b", ["1", 0]), "3": port("c", ["2", 0]),
         "4": node("Sample", latent=["3", 0], seed=0, steps=1), "5": port("choice"),
         "6": node("Sample", latent=["4", 0], sampler=["5", 0])}
found = ports(chain)
assert [p.type for p in found.ports if p.id in "abc"] == ["LATENT"] * 3
assert next((p.type, p.options) for p in found.ports if p.id == "choice") == ("COMBO", ["euler", "heun"])
# a chain of wires may be long
long = {"0": port("w0"), **{str(at): port(f"w{at}", [str(at - 1), 0]) for at in range(1, 2000)}}
long["end"] = node("Add", a=["1999", 0], b=1)
assert {p.type for p in ports(long).ports} == {"INT"}
refused(lambda: ports('{"x": ' * 100_000), "not JSON", "recursion")
# consumers that disagree
found = ports({
    "1": port("x"), "2": node("Add", a=["1", 0]), "3": node("Blur", image=["1", 0]), "4": node("Show", value=["2", 0])
})
assert found.ports[0].type == "*" and len(found.warnings) == 1, found
assert all(word in found.warnings[0]
           for word in ("port x", "node 2 (Add)", "INT", "node 3 (Blur)", "IMAGE")), found.warnings
# If the consumers of a port have different lists of choices, a value must be in all of these lists.
SCHEDULERS = {**CLASSES, "First": described([], True, c=[["x", "y"], {}]), "Other": described([], True, c=[["z", "y"]]),
              "Third": described([], True, c=[["w"], {}]), "Same": described([], True, c=[["y", "x"], {}]),
              "Unknown": described([], True, c=[[], {}])}


def choosing(*kinds):
    return {"1": port("p"), "2": port("wire", ["1", 0]), "0": node(kinds[0], c=["2", 0]),
            **{str(number + 3): node(kind, c=["1", 0]) for number, kind in enumerate(kinds[1:])}}


found = ports(choosing("First", "Other"), SCHEDULERS)
assert (found.ports[0].type, found.ports[0].options) == ("COMBO", ["y"]) and len(found.warnings) == 1, found
assert all(word in found.warnings[0] for word in ("port p ", "node 0 (First) at c", "node 3 (Other) at c")), found
found = ports(choosing("First", "Same", "Unknown"), SCHEDULERS)
assert sorted(found.ports[0].options) == ["x", "y"] and not found.warnings, found
assert ports(choosing("Unknown"), SCHEDULERS).ports[0].options is None
for kinds, value, words in ((("First", "Other"), "x", "is not one of its 1 choices"),
                            (("First", "Third"), "x", "no choice in common")):
    refused(lambda: check_value(ports(choosing(*kinds), SCHEDULERS).ports[0], value), "port p", words)
check_value(ports(choosing("First", "Other"), SCHEDULERS).ports[0], "y")

refused(lambda: ports({"1": node("Add", a=["2", 0]), "2": node("Add", a=["1", 0]), "3": node("Number", value=1)}),
        "node 1 (Add)", "cycle", "1", "2")
refused(lambda: ports({"1": node("Add", a=["1", 0])}), "node 1 (Add)", "cycle")
refused(lambda: ports({"1": node("Mystery"), "2": node("Number", value=1)}), "node 1 (Mystery)", "no node class")
refused(lambda: ports({"1": port("x")}), "node 1 (DiscomfortPort)", "connected to nothing")
for empty in ("", "  ", None, 5, "a\0b"):
    refused(lambda: ports({"1": port(empty), "2": node("Show", value=["1", 0])}), "node 1 (DiscomfortPort)",
            "unique_id")
titled = {**port("x", ["n", 0]), "_meta": {"title": "The second"}}
refused(lambda: ports({"n": node("Number", value=1), "1": port("x", ["n", 0]), "2": titled}), "node 1 ", "node 2 ",
        "The second", "OUTPUT", "port x")
refused(lambda: ports({"1": node("Add", a=["nobody", 0])}), "node 1 (Add)", "input a", "nobody")
refused(lambda: ports({"1": node("Number", value=1), "2": port("x", ["1", 3])}), "node 1 (Number)", "no output 3")
for nonsense in ({}, {"1": {}}, {"1": {"class_type": 5}}, {"1": {"class_type": "Add", "inputs": []}}, {"1": []},
                 '{"1":', "[1]", 7, None):
    refused(lambda: ports(nonsense))
refused(lambda: ports("no/such/file.json"), "no/such/file.json")
refused(lambda: memstow_loops.discover_ports(LOOP), "classes")
