"""Makes one workflow of several. In: workflows, in API format or as the editor saves them. Out: one workflow, in which
an OUTPUT port is joined to the INPUT port with its id in a later workflow. The result is in the editor's format if all
given workflows are, else in API format. Never drops a title or a position."""
from __future__ import annotations

import copy
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Optional

from .convert import from_ui
from .graph import Classes, Graph, LoopError, checked, is_link, is_ui, types_meet
from .ports import INPUT, OUTPUT, PASSTHRU, VALUE, Port, Ports, find_ports

# Members of a workflow's document that the result does not get. They belong to a single workflow, or to a format in
# which links are objects. In the result links are lists, as in version 0.4 of the format.
ONLY_IN_ONE = ("id", "revision", "state", "reroutes", "floatingLinks")
SPACE = 100 # space between two workflows, in the editor's units


class _Joints:
    """The joints between ports of all workflows. A port is (number of the workflow, node)."""

    def __init__(self, found: Sequence[Ports]) -> None:
        self.joined: dict[tuple[int, str], tuple[int, str]] = {} # an INPUT → the OUTPUT that feeds it
        # an INPUT that no OUTPUT feeds → the first INPUT with its id
        self.merged: dict[tuple[int, str], tuple[int, str]] = {}
        # ports that the result does not get, because a later port has the same id and mode
        self.dropped: set[tuple[int, str]] = set()
        self._outputs: dict[str, tuple[int, Port]] = {}
        self._open: dict[str, tuple[int, Port]] = {}
        for number, ports in enumerate(found):
            for port in ports.of(INPUT).values():
                self._take(number, port)
            for port in ports.of(OUTPUT).values():
                self._outputs[port.id] = (number, port)
        self._drop_twins(found)

    def _take(self, number: int, port: Port) -> None:
        giver = self._outputs.get(port.id)
        if giver is None:
            first = self._open.setdefault(port.id, (number, port))
            if first[1] is not port:
                self.merged[number, port.node] = (first[0], first[1].node)
            return
        if not types_meet(giver[1].type, port.type):
            raise LoopError(
                f"port {port.id}: workflow {giver[0] + 1} gives {giver[1].type} (node {giver[1].node}), and "
                f"workflow {number + 1} takes {port.type} (node {port.node})")
        self.joined[number, port.node] = (giver[0], giver[1].node)

    def _drop_twins(self, found: Sequence[Ports]) -> None:
        """If two ports of the result have the same id and mode, drops the earlier port."""
        wires = set(self.joined.values())
        ends: dict[tuple[str, str], tuple[int, str]] = {}
        for number, ports in enumerate(found):
            for port in ports.ports:
                place = (number, port.node)
                if port.mode == INPUT:
                    continue
                mode = PASSTHRU if place in wires or port.mode == PASSTHRU else OUTPUT
                before = ends.get((port.id, mode))
                if before is not None:
                    self.dropped.add(before)
                ends[port.id, mode] = place


def _offsets(sizes: Sequence[int], first: int) -> list[int]:
    """The numbers to add to ids, so that the ids of each workflow follow those of the previous one."""
    found, at = [], first
    for size in sizes:
        found.append(at)
        at += size
    return found


# ---- joining workflows in API format

def _stitch_api(graphs: Sequence[Graph], joints: _Joints) -> Graph:
    names: dict[tuple[int, str], str] = {}
    for number, graph in enumerate(graphs):
        for node_id in graph:
            names[number, node_id] = str(len(names) + 1)
    result: Graph = {}
    for number, graph in enumerate(graphs):
        for node_id, node in graph.items():
            place = (number, node_id)
            if place in joints.joined or place in joints.merged or place in joints.dropped:
                continue
            inputs = {name: _relinked(value, number, graphs, joints, names) for name, value in node["inputs"].items()}
            result[names[place]] = {**node, "inputs": inputs}
    return result


def _relinked(value: Any, number: int, graphs: Sequence[Graph], joints: _Joints,
              names: Mapping[tuple[int, str], str]) -> Any:
    """A link as it is in the result: it skips ports that are not in the result. Any other value is unchanged."""
    if not is_link(value):
        return value
    place, slot = (number, str(value[0])), value[1]
    while True:
        if place in joints.joined or place in joints.merged:
            place, slot = joints.joined.get(place) or joints.merged[place], 0
        elif place in joints.dropped:
            source = graphs[place[0]][place[1]]["inputs"][VALUE]
            place, slot = (place[0], str(source[0])), source[1]
        else:
            return [names[place], slot]


# ---- joining workflows in the editor's format

def _box(document: Mapping[str, Any]) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of a workflow's nodes."""
    corners = []
    for node in document["nodes"]:
        x, y = (float(at) for at in _pair(node.get("pos")))
        width, height = (float(at) for at in _pair(node.get("size")))
        corners.append((x, y, x + width, y + height))
    if not corners:
        return 0.0, 0.0, 0.0, 0.0
    return (min(c[0] for c in corners), min(c[1] for c in corners),
            max(c[2] for c in corners), max(c[3] for c in corners))


def _pair(value: Any) -> tuple[Any, Any]:
    """A position or size as a pair of numbers, (0, 0) if there is none. Older editors save a pair as an object."""
    if isinstance(value, Mapping):
        return value.get("0", 0), value.get("1", 0)
    return (value[0], value[1]) if isinstance(value, Sequence) and len(value) >= 2 else (0, 0)


def _moves(documents: Sequence[Mapping[str, Any]]) -> list[float]:
    """How far each workflow is moved to the right. A workflow that overlaps an earlier one is moved behind the
    rightmost of all earlier workflows; any other workflow stays where it is."""
    moves: list[float] = []
    taken: list[tuple[float, float, float, float]] = []
    for document in documents:
        left, top, right, bottom = _box(document)
        hit = [b for b in taken if left < b[2] and b[0] < right and top < b[3] and b[1] < bottom]
        move = max(b[2] for b in taken) + SPACE - left if hit else 0.0
        moves.append(move)
        taken.append((left + move, top, right + move, bottom))
    return moves


def _numbers(document: Mapping[str, Any], key: str, last: str) -> int:
    found: list[int] = [entry["id"] if isinstance(entry, Mapping) else entry[0] for entry in document.get(key) or []]
    if not all(isinstance(number, int) for number in found):
        raise LoopError(f"the {key} of a workflow have ids that are no numbers")
    return max([0, *found, int(document.get(last) or 0)])


def _last(entries: Any) -> int:
    """The largest id. Groups of old editors have no id."""
    found: list[int] = [one["id"] for one in entries or [] if isinstance(one.get("id"), int)]
    return max([0, *found])


def _reroutes_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The reroutes: points through which the editor draws links. Their place in the document depends on the format's
    version."""
    return document.get("reroutes") or (document.get("extra") or {}).get("reroutes") or []


def _subgraphs_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return (document.get("definitions") or {}).get("subgraphs") or []


def _part_subgraphs(number: int, document: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    """Gives a subgraph a new id if an earlier workflow has a different subgraph with the same id. A subgraph that
    contains a renamed subgraph gets a new id, too."""
    subgraphs = _subgraphs_of(document)
    fresh: dict[str, str] = {}
    for _round in subgraphs:
        for one in subgraphs:
            holds = any(node.get("type") in fresh for node in one.get("nodes") or [])
            if one["id"] in known and (holds or known[one["id"]] != one):
                fresh[one["id"]] = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{one['id']} of workflow {number + 1}"))
    for node in [*document["nodes"], *(node for one in subgraphs for node in one.get("nodes") or [])]:
        if node.get("type") in fresh:
            node["type"] = fresh[node["type"]]
    for one in subgraphs:
        one["id"] = fresh.get(one["id"], one["id"])


class _Editor:
    """Joins workflows of the editor's format. Ports inside subgraphs stay as they are."""

    def __init__(self, documents: Sequence[Mapping[str, Any]], joints: _Joints) -> None:
        self.documents = [copy.deepcopy(dict(document)) for document in documents]
        self.joints = joints
        self.nodes = _offsets([_numbers(d, "nodes", "last_node_id") for d in self.documents], 0)
        self.link_offsets = _offsets([_numbers(d, "links", "last_link_id") for d in self.documents], 0)
        self.group_offsets = _offsets([_last(d.get("groups")) for d in self.documents], 0)
        self.reroute_offsets = _offsets([_last(_reroutes_of(d)) for d in self.documents], 0)
        self.reroutes: list[dict[str, Any]] = []
        self.parents: dict[int, int] = {} # by link: the last reroute on its way
        self.found: dict[str, Any] = {"nodes": [], "links": [], "groups": []}

    def place(self, number: int, node_id: Any) -> tuple[int, str]:
        return number, str(node_id)

    def run(self) -> dict[str, Any]:
        subgraphs: dict[str, Any] = {}
        for number, (document, move) in enumerate(zip(self.documents, _moves(self.documents))):
            self._renumber(number, document, move)
            _part_subgraphs(number, document, subgraphs)
            for subgraph in _subgraphs_of(document):
                subgraphs[subgraph["id"]] = subgraph
        self._join()
        nodes, links = self.found["nodes"], self.found["links"]
        kept = {key: value for key, value in self.documents[0].items() if key not in ONLY_IN_ONE}
        result = {**kept, **self.found, "version": 0.4, "extra": self._extra(),
                  "last_node_id": max([0, *(node["id"] for node in nodes)]),
                  "last_link_id": max([0, *(e[0] for e in links)])}
        if subgraphs:
            result["definitions"] = {**(self.documents[0].get("definitions") or {}),
                                     "subgraphs": list(subgraphs.values())}
        return result

    def _renumber(self, number: int, document: Mapping[str, Any], move: float) -> None:
        add, add_link = self.nodes[number], self.link_offsets[number]
        for node in document["nodes"]:
            x, y = _pair(node.get("pos"))
            node.update(id=node["id"] + add, pos=[x + move, y])
            for entry in node.get("inputs") or []:
                if entry.get("link") is not None:
                    entry["link"] += add_link
            for entry in node.get("outputs") or []:
                entry["links"] = [link + add_link for link in entry.get("links") or []]
            self.found["nodes"].append(node)
        for entry in document.get("links") or []:
            link = [entry[key] for key in ("id", "origin_id", "origin_slot", "target_id", "target_slot", "type")] \
                if isinstance(entry, Mapping) else list(entry)
            self.found["links"].append([link[0] + add_link, link[1] + add, link[2], link[3] + add, *link[4:]])
        self._renumber_reroutes(number, document, move)
        for group in document.get("groups") or []:
            if isinstance(group.get("id"), int):
                group["id"] += self.group_offsets[number]
            if isinstance(group.get("bounding"), list) and group["bounding"]:
                group["bounding"][0] += move
            self.found["groups"].append(group)

    def _renumber_reroutes(self, number: int, document: Mapping[str, Any], move: float) -> None:
        add, add_link = self.reroute_offsets[number], self.link_offsets[number]
        for reroute in _reroutes_of(document):
            x, y = _pair(reroute.get("pos"))
            parent = {"parentId": reroute["parentId"] + add} if reroute.get("parentId") is not None else {}
            self.reroutes.append({**reroute, **parent, "id": reroute["id"] + add, "pos": [x + move, y],
                                  "linkIds": [link + add_link for link in reroute.get("linkIds") or []]})
        objects = [link for link in document.get("links") or [] if isinstance(link, Mapping)]
        for entry in [*objects, *((document.get("extra") or {}).get("linkExtensions") or [])]:
            if entry.get("parentId") is not None:
                self.parents[entry["id"] + add_link] = entry["parentId"] + add

    def _extra(self) -> dict[str, Any]:
        """The first workflow's member `extra`, with the reroutes of all links that are left."""
        links = {link[0] for link in self.found["links"]}
        extra = {key: value for key, value in (self.documents[0].get("extra") or {}).items()
                 if key not in ("reroutes", "linkExtensions")}
        reroutes = [{**one, "linkIds": [link for link in one["linkIds"] if link in links]} for one in self.reroutes]
        parents = [{"id": link, "parentId": parent} for link, parent in self.parents.items() if link in links]
        if any(one["linkIds"] for one in reroutes):
            extra["reroutes"] = [one for one in reroutes if one["linkIds"]]
            extra["linkExtensions"] = parents
        return extra

    def _id(self, place: tuple[int, str]) -> Optional[int]:
        """A port's new id; None for a port inside a subgraph."""
        return int(place[1]) + self.nodes[place[0]] if place[1].isdecimal() else None

    def _join(self) -> None:
        for one, other in (*self.joints.joined.items(), *self.joints.merged.items()):
            self._take_place(self._need(one), self._need(other), 0)
        for place in self.joints.dropped:
            node = self._need(place)
            source = next(link for link in self.found["links"] if link[3] == node)
            self._take_place(node, source[1], source[2])

    def _need(self, place: tuple[int, str]) -> int:
        number = self._id(place)
        if number is None:
            raise LoopError(
                f"node {place[1]} of workflow {place[0] + 1} is a port inside of a subgraph: it cannot be joined in "
                f"the editor's format. Export the workflows by Workflow > Export (API)")
        return number

    def _take_place(self, gone: int, instead: int, slot: int) -> None:
        """Connects the consumers of the node `gone` to the output `slot` of the node `instead`. Removes `gone` and the
        links into it."""
        nodes = {node["id"]: node for node in self.found["nodes"]}
        into = {link[0] for link in self.found["links"] if link[3] == gone}
        for link in self.found["links"]:
            if link[1] == gone:
                link[1], link[2] = instead, slot
                nodes[instead]["outputs"][slot].setdefault("links", []).append(link[0])
        for node in nodes.values():
            for entry in node.get("outputs") or []:
                entry["links"] = [number for number in entry.get("links") or [] if number not in into]
        self.found["links"] = [link for link in self.found["links"] if link[0] not in into]
        self.found["nodes"] = [node for node in self.found["nodes"] if node["id"] != gone]


def stitch(workflows: Sequence[Any], classes: Classes) -> dict[str, Any]:
    """Makes one workflow of several; see stitch_workflows()."""
    if not workflows:
        raise LoopError("there is no workflow to stitch")
    graphs = [from_ui(one, classes) if is_ui(one) else checked(one) for one in workflows]
    joints = _Joints([find_ports(graph, classes) for graph in graphs])
    result = _Editor(workflows, joints).run() if all(map(is_ui, workflows)) else _stitch_api(graphs, joints)
    find_ports(from_ui(result, classes) if is_ui(result) else checked(result), classes)
    return result
