#!/usr/bin/env python3
"""Converts documents from the editor's format to API format. The documents have widgets by position, controls beside
seeds, upload buttons, inputs that were widgets, reroutes, primitives and notes, muted and bypassed nodes, and
subgraphs, also nested, with their own links and widgets. If something cannot be converted, the error names it: unknown
classes, group nodes, a subgraph in itself, documents that are no workflow."""
from _graphs import CLASSES, described, refused
import memstow_loops


def shape(id, kind, widgets=(), inputs=(), outputs=(), mode=0, **more):
    """inputs: (name, link) or (name, link, type, is a widget)."""
    return {"id": id, "type": kind, "mode": mode, "pos": [0, 0],
            "widgets_values": widgets if isinstance(widgets, dict) else list(widgets),
            "inputs": [{"name": i[0], "link": i[1], "type": i[2] if len(i) > 2 else "*",
                        **({"widget": {"name": i[0]}} if len(i) > 3 else {})} for i in inputs],
            "outputs": [{"name": "o", "type": kind_of} for kind_of in outputs], **more}


def document(*nodes, links=(), **more):
    return {"last_node_id": 99, "last_link_id": 99, "nodes": list(nodes), "links": [list(link) for link in links],
            "version": 0.4, **more}


def inputs(graph):
    return {node_id: n["inputs"] for node_id, n in graph.items()}


def convert(*nodes, **more):
    return memstow_loops.convert_workflow(document(*nodes, **more), CLASSES)


# The values of widgets are matched by position. The control of a seed and the upload button exist only in the editor.
found = convert(shape(1, "Image", ["b.png", "image"], outputs=["IMAGE", "MASK"]),
                shape(2, "Encode", inputs=[("pixels", 1), ("mask", None)]),
                shape(3, "Sample", [42, "randomize", 20, "heun", 0.5], [("latent", 2)], title="Mine"),
                links=[(1, 1, 0, 2, 0, "IMAGE"), (2, 2, 0, 3, 0, "LATENT")])
assert inputs(found) == {"1": {"image": "b.png"}, "2": {"pixels": ["1", 0]},
                         "3": {"latent": ["2", 0], "seed": 42, "steps": 20, "sampler": "heun", "denoise": 0.5}}, found
assert found["3"]["_meta"]["title"] == "Mine" and found["1"]["_meta"]["title"] == "Image"
# If the value after a seed is true or false, it belongs to the next input of the node's class if that is a BOOLEAN.
# Otherwise it is the seed's control, in the form in which old editors saved it.
for control in (True, False):
    assert inputs(convert(shape(3, "Sample", [42, control, 20, "heun", 0.5]))) == {
        "3": {"seed": 42, "steps": 20, "sampler": "heun", "denoise": 0.5}}
flagged = {**CLASSES, "Seeded": described([], True, seed=["INT", {}], flag=["BOOLEAN", {}], steps=["INT", {}])}
for control in ([], ["fixed"]):
    found = memstow_loops.convert_workflow(document(shape(1, "Seeded", [42, *control, True, 20])), flagged)
    assert inputs(found) == {"1": {"seed": 42, "flag": True, "steps": 20}}, found
# Nodes in other forms: with a seed but without the control, with an input that was a widget, with named widgets, and
# with widgets that have their default values.
found = convert(shape(1, "Number", [7]),
                shape(2, "Sample", [42, 20, "heun"], [("latent", None), ("seed", 5, "INT", True)]),
                shape(3, "Blur", {"radius": 2.5, "hidden": 1}), shape(4, "Blur"), shape(5, "Text", ["fixed"]),
                links=[(5, 1, 0, 2, 1, "INT")])
assert inputs(found) == {"1": {"value": 7}, "2": {"seed": ["1", 0], "steps": 20, "sampler": "heun", "denoise": 1.0},
                         "3": {"radius": 2.5}, "4": {"radius": 1.0}, "5": {"text": "fixed"}}, found
refused(lambda: convert(shape(1, "Sample", [1, "fixed"])), "node 1 (Sample)", "steps")
# reroutes, primitives, notes; links as objects
found = memstow_loops.convert_workflow(
    {**document(shape(1, "Number", [7]), shape(2, "Reroute", inputs=[("", 1)]), shape(3, "Reroute", inputs=[("", 2)]),
                shape(4, "PrimitiveNode", [9, "fixed"]), shape(5, "Add", [0, 0], [("a", 3), ("b", 4)]),
                shape(6, "Note", ["words"]), shape(7, "MarkdownNote", ["words"])),
     "links": [{"id": n, "origin_id": o, "origin_slot": 0, "target_id": t, "target_slot": s, "type": "INT"} for n, o, t,
               s in ((1, 1, 2, 0), (2, 2, 3, 0), (3, 3, 5, 0), (4, 4, 5, 1))]}, CLASSES)
assert inputs(found) == {"1": {"value": 7}, "5": {"a": ["1", 0], "b": 9}}, found
# A node behind a bypassed node is linked to the bypassed node's input of the same type. A muted node gives nothing.
links = [(1, 1, 0, 2, 0, "IMAGE"), (2, 2, 0, 3, 0, "IMAGE")]
for mode, expected in ((0, {"image": ["2", 0]}), (4, {"image": ["1", 0]}), (2, {})):
    found = convert(shape(1, "Image", ["a.png"], outputs=["IMAGE"]),
                    shape(2, "Blur", [1.0], [("image", 1, "IMAGE")], ["IMAGE"], mode),
                    shape(3, "ShowImage", inputs=[("image", 2)]), links=links)
    assert found["3"]["inputs"] == expected and ("2" in found) == (mode == 0), (mode, found)
found = convert(shape(1, "Number", [1], outputs=["INT"]),
                shape(2, "Encode", inputs=[("pixels", 1, "INT")], outputs=["LATENT"], mode=4),
                shape(3, "Show", inputs=[("value", 2)]), links=links)
assert found["3"]["inputs"] == {}, "a bypassed node without an input of that type gives nothing"
# a value that is a list is no link
assert inputs(convert(shape(1, "Text", [["a", 1]])))["1"] == {"text": {"__value__": ["a", 1]}}


# Subgraphs, also one inside another. An input of a subgraph comes from a link, from a widget, or from neither.
def subgraph(id, nodes, links, **more):
    keys = ("id", "origin_id", "origin_slot", "target_id", "target_slot")
    return {"id": id, "name": id, "nodes": nodes, "links": [dict(zip(keys, link), type="INT") for link in links],
            **more}


inner = subgraph("inner", [shape(1, "Add", [0, 5], [("a", 1), ("b", 2, "INT", True)])],
                 [(1, -10, 0, 1, 0), (2, -10, 1, 1, 1), (3, 1, 0, -20, 0)])
outer = subgraph("outer", [shape(8, "inner", [], [("a", 1), ("b", 2, "INT", True)])],
                 [(1, -10, 0, 8, 0), (2, -10, 1, 8, 1), (3, 8, 0, -20, 0)])
for widgets, b in (([33], 33), ([], 5)):
    found = convert(shape(1, "Number", [7]), shape(2, "outer", widgets, [("a", 1), ("b", None, "INT", True)]),
                    shape(3, "Show", inputs=[("value", 2)]), links=[(1, 1, 0, 2, 0, "INT"), (2, 2, 0, 3, 0, "INT")],
                    definitions={"subgraphs": [inner, outer]})
    assert inputs(found) == {"1": {"value": 7}, "2:8:1": {"a": ["1", 0], "b": b}, "3": {"value": ["2:8:1", 0]}}, found
found = convert(shape(2, "inner", [], [("a", None), ("b", None)], ["INT"], 4), shape(3, "Show", inputs=[("value", 2)]),
                shape(4, "Number", [1]), links=[(2, 2, 0, 3, 0, "INT")], definitions={"subgraphs": [inner]})
assert inputs(found) == {"3": {}, "4": {"value": 1}}, "a bypassed subgraph"
itself = subgraph("self", [shape(1, "self")], [])
refused(lambda: convert(shape(1, "self"), definitions={"subgraphs": [itself]}), "contains itself")
refused(lambda: convert(shape(1, "Mystery"), shape(2, "workflow>group"), shape(3, "Number", [1])), "node 1", "Mystery",
        "node 2", "group node", "Export (API)")
refused(lambda: convert(shape(1, "Reroute", inputs=[("", 1)]), shape(2, "Reroute", inputs=[("", 2)]),
                        shape(3, "Show", inputs=[("value", 3)]),
                        links=[(1, 2, 0, 1, 0, "*"), (2, 1, 0, 2, 0, "*"), (3, 1, 0, 3, 0, "*")]), "in a circle")
for nodes in ([{"id": 1}], [{}], [5], []):
    refused(lambda: memstow_loops.convert_workflow({"nodes": nodes, "links": []}, CLASSES))
for links in ([[1]], ["x"], [{"id": 1}], 5):
    refused(lambda: memstow_loops.convert_workflow({"nodes": [shape(1, "Number", [1])], "links": links}, CLASSES))
