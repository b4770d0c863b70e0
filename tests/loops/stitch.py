#!/usr/bin/env python3
"""stitch_workflows joins several workflows. It makes the ids of their nodes distinct. It joins an OUTPUT to an INPUT
with the same id in a later workflow. Ports without a partner stay ports, one for each id and mode. Types that do not
match are an error. In the editor's format, titles and positions survive, links are consistent at both ends, and the
result converts to the same graph as in API format."""
import copy, itertools, json

from _graphs import CLASSES, node, port, refused
import memstow_loops


def stitch(*graphs):
    before = copy.deepcopy(graphs)
    result = memstow_loops.stitch_workflows(list(graphs), CLASSES)
    assert graphs == before
    return result


def modes(graph):
    return sorted((p.id, p.mode, p.type) for p in memstow_loops.discover_ports(graph, CLASSES).ports)


def producer(graph, kind, name):
    """The class of the node that feeds an input, past ports."""
    (found,) = [n for n in graph.values() if n["class_type"] == kind]
    source = graph[found["inputs"][name][0]]
    while source["class_type"] == "DiscomfortPort" and "input_data" in source["inputs"]:
        source = graph[source["inputs"]["input_data"][0]]
    return source


one = {"1": port("start"), "2": node("Add", a=["1", 0], b=2), "3": port("x", ["2", 0]),
       "4": node("Image", image="a.png"), "5": port("picture", ["4", 0])}
two = {"1": {**port("x"), "_meta": {"title": "in"}},
       "2": {**node("Sample", latent=["9", 0], seed=["1", 0], steps=1), "_meta": {"title": "The sampler"}},
       "9": port("latent"), "3": port("result", ["2", 0])}
both = stitch(one, two)
assert modes(both) == [("latent", "INPUT", "LATENT"), ("picture", "OUTPUT", "IMAGE"), ("result", "OUTPUT", "LATENT"),
                       ("start", "INPUT", "INT"), ("x", "PASSTHRU", "INT")], modes(both)
assert len(both) == 8 and producer(both, "Sample", "seed")["class_type"] == "Add"
assert [n["_meta"]["title"] for n in both.values() if n["class_type"] == "Sample"] == ["The sampler"]
# If workflows in a row all read and write one port, the stitched workflow has one INPUT, one OUTPUT and at most one
# wire for it.
step = {"1": port("x"), "2": node("Add", a=["1", 0], b=1), "3": port("x", ["2", 0])}
for count in (1, 2, 3, 5):
    chain = stitch(*[step] * count)
    assert modes(chain) == [("x", "INPUT", "INT"), ("x", "OUTPUT", "INT"),
                            *([("x", "PASSTHRU", "INT")] if count > 1 else [])], (count, modes(chain))
    assert sum(n["class_type"] == "Add" for n in chain.values()) == count
    out = next(p.node for p in memstow_loops.discover_ports(chain, CLASSES).ports if p.mode == "OUTPUT")
    length, at = 0, chain[out]["inputs"]["input_data"][0]
    while True:
        length += chain[at]["class_type"] == "Add"
        source = chain[at]["inputs"].get("a") or chain[at]["inputs"].get("input_data")
        if not source:
            break
        at = source[0]
    assert length == count, "they are in a row"
# Two open INPUTs of the same id become one. Of two OUTPUTs of the same id, the last one counts.
twice = stitch({"1": port("n"), "2": node("Add", a=["1", 0]), "3": port("y", ["2", 0])},
               {"1": port("n"), "2": node("Add", a=["1", 0], b=5), "3": port("y", ["2", 0])})
assert modes(twice) == [("n", "INPUT", "INT"), ("y", "OUTPUT", "INT")]
(out,) = [n for n in twice.values() if n["class_type"] == "DiscomfortPort" and "input_data" in n["inputs"]]
assert twice[out["inputs"]["input_data"][0]]["inputs"]["b"] == 5
refused(lambda: stitch(one,
                       {"1": port("x"), "2": node("Blur", image=["1", 0]), "3": node("ShowImage", image=["2", 0])}),
        "port x", "INT", "IMAGE", "workflow 1", "workflow 2")
refused(lambda: stitch(), "no workflow")

# ---- the editor's format


def ui(*nodes, links=(), **more):
    return {"id": "u", "revision": 0, "last_node_id": max(n["id"] for n in nodes),
            "last_link_id": max([0, *(link[0] for link in links)]), "nodes": list(nodes),
            "links": [list(link) for link in links], "groups": [], "config": {}, "extra": {}, "version": 0.4, **more}


def shape(id, kind, widgets=(), inputs=(), outputs=(), pos=(0, 0), title=None):
    return {"id": id, "type": kind, "pos": list(pos), "size": [200, 100], "flags": {}, "order": 0, "mode": 0,
            "properties": {}, "inputs": [{"name": name, "type": "*", "link": link} for name, link in inputs],
            "outputs": [{"name": "o", "type": kind_of, "links": list(numbers)} for kind_of, numbers in outputs],
            "widgets_values": list(widgets), **({"title": title} if title else {})}


def editor_step(amount, pos=(0, 0)):
    x, y = pos
    return ui(shape(1, "DiscomfortPort", ["x", "t"], [("input_data", None)], [("*", [1])], pos, "in"),
              shape(2, "Add", [0, amount], [("a", 1)], [("INT", [2])], (x + 250, y), f"plus {amount}"),
              shape(7, "DiscomfortPort", ["x", ""], [("input_data", 2)], [("*", [])], (x + 500, y), "out"),
              links=[(1, 1, 0, 2, 0, "INT"), (2, 2, 0, 7, 0, "INT")],
              groups=[{"title": "g", "bounding": [x - 10, y - 10, 800, 200]}])


def titles_at(document, title):
    """How far to the right the node with this title lies."""
    return next(node["pos"][0] for node in document["nodes"] if node.get("title") == title)


def check_links(document):
    """Asserts that both nodes of each link name the link, and that each link that a node names exists."""
    nodes = {n["id"]: n for n in document["nodes"]}
    links = {link[0]: link for link in document["links"]}
    assert len(nodes) == len(document["nodes"]) and len(links) == len(document["links"])
    assert document["last_node_id"] == max(nodes) and document["last_link_id"] == max(links)
    for number, origin, slot, target, target_slot, _kind in links.values():
        assert number in nodes[origin]["outputs"][slot]["links"]
        assert nodes[target]["inputs"][target_slot]["link"] == number
    assert {number for n in nodes.values() for o in n["outputs"] for number in o["links"]} == set(links)
    assert {i["link"] for n in nodes.values() for i in n["inputs"]} - {None} == set(links)


first, second, third = editor_step(1), editor_step(2, (0, 50)), editor_step(3, (5000, 5000))
result = stitch(first, second, third)
check_links(result)
titles = {n["title"]: n for n in result["nodes"]}
assert {"plus 1", "plus 2", "plus 3"} <= set(titles)
places = {title: node["pos"] for title, node in titles.items()}
assert places["plus 1"] == [250, 0] and places["plus 3"] == [5250, 5000], "moved only where it must be"
assert places["plus 2"][1] == 50, "moved only where it must be"
boxes = [(n["pos"][0], n["pos"][1]) for n in result["nodes"]]
assert all(abs(a[0] - b[0]) >= 200 or abs(a[1] - b[1]) >= 100 for a,
           b in itertools.combinations(boxes, 2)), "nothing lies on another"
assert [g["title"] for g in result["groups"]] == ["g"] * 3
assert modes(result) == [("x", "INPUT", "INT"), ("x", "OUTPUT", "INT"), ("x", "PASSTHRU", "INT")]
as_api = [memstow_loops.convert_workflow(d, CLASSES) for d in (first, second, third)]


def essence(graph):
    """The computation of a graph, in a form that does not depend on its ids."""
    def of(node_id):
        n = graph[node_id]
        return (n["class_type"],
                tuple(sorted((k, of(v[0]) + (v[1],) if isinstance(v, list) else v) for k, v in n["inputs"].items())))
    return sorted(map(repr, (of(node_id) for node_id in graph)))


assert essence(memstow_loops.convert_workflow(result, CLASSES)) == essence(stitch(*as_api))
assert json.loads(json.dumps(result)) == result
# if one workflow has API format, the result has it, too
assert essence(stitch(first, as_api[1])) == essence(stitch(*as_api[:2]))

# Documents with groups and reroutes are stitched, in both versions of the format. In version 1, links are objects.
def rerouted(amount, version):
    document = editor_step(amount)
    document["groups"][0]["id"] = 1
    points = [{"id": 1, "pos": [300, 0], "linkIds": [1, 2]}, {"id": 2, "parentId": 1, "pos": [320, 10], "linkIds": [1]}]
    parents = {1: 2, 2: 1}
    if version == 0.4:
        extra = {"reroutes": points, "linkExtensions": [{"id": n, "parentId": p} for n, p in parents.items()], "x": 1}
        return {**document, "extra": extra}
    keys = ("id", "origin_id", "origin_slot", "target_id", "target_slot", "type")
    links = [{**dict(zip(keys, link)), "parentId": parents[link[0]]} for link in document.pop("links")]
    del document["last_node_id"], document["last_link_id"]
    return {**document, "version": 1, "links": links, "reroutes": points, "extra": {"x": 1}, "floatingLinks": [],
            "state": {"lastNodeId": 7, "lastLinkId": 2, "lastGroupId": 1, "lastRerouteId": 2}}


for versions in itertools.product((0.4, 1), repeat=2):
    result = stitch(*(rerouted(amount, version) for amount, version in enumerate(versions, 1)))
    check_links(result)
    assert result["version"] == 0.4 and not {"state", "reroutes", "floatingLinks"} & result.keys(), result.keys()
    assert [group["id"] for group in result["groups"]] == [1, 2] and result["extra"]["x"] == 1
    points = {point["id"]: point for point in result["extra"]["reroutes"]}
    parents = {entry["id"]: entry["parentId"] for entry in result["extra"]["linkExtensions"]}
    links = {link[0] for link in result["links"]}
    assert set(points) == {1, 2, 3, 4} and points[2]["parentId"] == 1 and points[4]["parentId"] == 3, points
    assert parents.keys() == links and set(parents.values()) <= set(points), (parents, links)
    assert {link for point in points.values() for link in point["linkIds"]} == links
    assert points[3]["pos"][0] - points[1]["pos"][0] == titles_at(result, "plus 2") - titles_at(result, "plus 1")
    assert essence(memstow_loops.convert_workflow(result, CLASSES)) == essence(stitch(*as_api[:2]))

# Two workflows have different subgraphs with the same id, as can happen with edited copies of one workflow. One of
# these subgraphs is inside another subgraph.


def with_subgraphs(amount):
    keys = ("id", "origin_id", "origin_slot", "target_id", "target_slot")
    links = [dict(zip(keys, link), type="INT") for link in [(1, -10, 0, 1, 0), (2, 1, 0, -20, 0)]]
    inside = {"id": "U", "name": "U",
              "nodes": [shape(1, "Add", [0, amount], [("a", 1)], [("INT", [2])])], "links": links}
    around = {"id": "V", "name": "V", "nodes": [shape(1, "U", [], [("a", 1)], [("INT", [2])])], "links": links}
    return ui(shape(1, "V", [], [("a", 1)], [("INT", [2])]),
              shape(2, "DiscomfortPort", ["x", ""], [("input_data", None)], [("*", [1])]),
              shape(3, "DiscomfortPort", ["x", ""], [("input_data", 2)], [("*", [])]),
              links=[(1, 2, 0, 1, 0, "INT"), (2, 1, 0, 3, 0, "INT")], definitions={"subgraphs": [around, inside]})


def amounts(document):
    graph = memstow_loops.convert_workflow(document, CLASSES)
    return [n["inputs"].get("b") for n in graph.values() if n["class_type"] == "Add"]


assert amounts(stitch(with_subgraphs(10), with_subgraphs(10))) == [10, 10]
assert len(stitch(with_subgraphs(10), with_subgraphs(10))["definitions"]["subgraphs"]) == 2, "equal ones are one"
assert amounts(stitch(with_subgraphs(10), with_subgraphs(1000), with_subgraphs(5))) == [10, 1000, 5]
