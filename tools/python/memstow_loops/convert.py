"""Converts a workflow from the format of ComfyUI's editor to the API format, which the server takes. In: a document
with nodes and links, in which the value of a widget is known only by its position; and the node classes. Out: a
workflow in API format, with the titles. Never guesses: an error names what cannot be converted."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Optional

from .graph import Classes, Graph, Input, LoopError

MUTED, BYPASSED = 2, 4 # modes of a node
REROUTE, PRIMITIVE = "Reroute", "PrimitiveNode"
NOTES = ("Note", "MarkdownNote")
FROM_OUTSIDE, TO_OUTSIDE = -10, -20 # ids of the nodes that stand for a subgraph's own inputs and outputs
WIDGETS = ("INT", "FLOAT", "STRING", "BOOLEAN", "COMBO")
# values of the control widget beside a seed. Only the editor uses this widget
CONTROLS = ("fixed", "increment", "decrement", "randomize")
MOST_DEPTH, MOST_LINKS = 64, 200 # depth of nested subgraphs; number of reroutes and bypassed nodes in a row


@dataclass(frozen=True)
class Link:
    origin: Any
    slot: int
    target: Any
    target_slot: int


@dataclass
class Scope:
    """One graph: the outermost graph, or a subgraph as one node uses it."""
    nodes: dict[Any, Mapping[str, Any]]
    links: dict[Any, Link]
    prefix: str = ""
    outer: Optional["Scope"] = None
    node: Mapping[str, Any] = field(default_factory=dict) # in the outer graph, the node that uses this subgraph


@dataclass(frozen=True)
class Value:
    """The value of a widget that a link leads to."""
    value: Any


@dataclass(frozen=True)
class Origin:
    node: str
    slot: int


def _link(entry: Any) -> tuple[Any, Link]:
    if isinstance(entry, Mapping):
        return entry["id"], Link(entry["origin_id"], entry["origin_slot"], entry["target_id"], entry["target_slot"])
    number, origin, slot, target, target_slot = entry[:5]
    return number, Link(origin, slot, target, target_slot)


def _scope(document: Mapping[str, Any], **more: Any) -> Scope:
    try:
        links = dict(_link(entry) for entry in document.get("links") or [] if entry is not None)
        return Scope({node["id"]: node for node in document["nodes"]}, links, **more)
    except (KeyError, TypeError, ValueError) as error:
        raise LoopError(f"this is no workflow that the editor has saved: {type(error).__name__} {error}") from None


def _inputs(node: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(node.get("inputs") or [])


def _widget_names(node: Mapping[str, Any]) -> list[str]:
    """The names of those inputs of a node that also have widgets, in the node's order."""
    return [entry["name"] for entry in _inputs(node) if entry.get("widget")]


class Converter:
    def __init__(self, document: Mapping[str, Any], classes: Classes) -> None:
        self.classes = classes
        subgraphs = (document.get("definitions") or {}).get("subgraphs") or []
        self.subgraphs = {subgraph["id"]: subgraph for subgraph in subgraphs if isinstance(subgraph, Mapping)}
        self.root = _scope(document)
        self.graph: Graph = {}
        self.refused: list[str] = []

    def run(self) -> Graph:
        self._emit_all(self.root, 0)
        if self.refused:
            raise LoopError(f"the workflow cannot be converted: {'; '.join(self.refused)}. "
                            "Export it by Workflow > Export (API)")
        if not self.graph:
            raise LoopError("the workflow has no node that runs")
        for node in self.graph.values(): # drop links from nodes that do not run
            node["inputs"] = {name: value for name, value in node["inputs"].items()
                              if not (isinstance(value, list) and value[0] not in self.graph)}
        return self.graph

    # ---- nodes: which of them run

    def _inside(self, scope: Scope, node: Mapping[str, Any]) -> Scope:
        return _scope(self.subgraphs[node["type"]], prefix=f"{scope.prefix}{node['id']}:", outer=scope, node=node)

    def _emit_all(self, scope: Scope, depth: int) -> None:
        if depth > MOST_DEPTH:
            raise LoopError("a subgraph contains itself")
        for node in scope.nodes.values():
            kind = node.get("type")
            if node.get("mode") in (MUTED, BYPASSED) or kind in (REROUTE, PRIMITIVE, *NOTES):
                continue
            if kind in self.subgraphs:
                self._emit_all(self._inside(scope, node), depth + 1)
            else:
                self._emit(scope, node)

    def _emit(self, scope: Scope, node: Mapping[str, Any]) -> None:
        kind, number = str(node.get("type")), f"{scope.prefix}{node['id']}"
        found = self.classes.find(kind)
        if found is None:
            self.refused.append(f"node {number}: no node class {kind} is installed"
                                + (", it is a group node" if kind.startswith(("workflow>", "workflow/")) else ""))
            return
        inputs = self._widgets(number, node, found.inputs)
        for entry in _inputs(node):
            if entry.get("link") is None:
                continue
            origin = self._origin_of_link(scope, entry["link"], 0)
            if isinstance(origin, Value):
                inputs[entry["name"]] = _literal(origin.value)
            elif origin is not None:
                inputs[entry["name"]] = [origin.node, origin.slot]
            elif entry.get("widget") is None or entry["name"] not in inputs:
                inputs.pop(entry["name"], None)
        title = node.get("title") or kind
        self.graph[number] = {"class_type": kind, "inputs": inputs, "_meta": {"title": title}}

    # ---- the values of widgets

    def _widgets(self, number: str, node: Mapping[str, Any], specs: Mapping[str, Input]) -> dict[str, Any]:
        """The values of a node's widgets by name. The editor saves the values without names, in the order of the
        class's inputs."""
        saved = node.get("widgets_values") or []
        if isinstance(saved, Mapping):
            return {name: _literal(saved[name]) for name in specs if name in saved}
        values, found, named = list(saved), {}, set(_widget_names(node))
        widgets = [(name, spec) for name, spec in specs.items() if _is_widget(name, spec, named)]
        for (name, spec), following in zip(widgets, [*(spec for _name, spec in widgets[1:]), None]):
            if values:
                found[name] = _literal(values.pop(0))
                if values and _has_control(name, spec) and _is_control(values[0], following):
                    values.pop(0)
            elif "default" in spec.options:
                found[name] = _literal(spec.options["default"])
            elif spec.is_required and not any(e["name"] == name and e.get("link") is not None for e in _inputs(node)):
                self.refused.append(f"node {number} ({node.get('type')}): no value is saved for {name}")
        return found

    # ---- following a link to its origin

    def _origin_of_link(self, scope: Scope, number: Any, depth: int) -> Origin | Value | None:
        link = scope.links.get(number)
        if link is None:
            return None
        if depth > MOST_LINKS:
            raise LoopError(f"the links of node {scope.prefix}{link.target} lead in a circle")
        if link.origin == FROM_OUTSIDE:
            return self._from_outside(scope, link.slot, depth)
        return self._origin(scope, link.origin, link.slot, depth)

    def _origin(self, scope: Scope, node_id: Any, slot: int, depth: int) -> Origin | Value | None:
        """Where the value of a node's output comes from: from an output of a node that runs, or from a widget. None if
        it comes from neither."""
        node = scope.nodes.get(node_id)
        if node is None or node.get("mode") == MUTED:
            return None
        kind = node.get("type")
        if node.get("mode") == BYPASSED:
            return self._around(scope, node, slot, depth)
        if kind == REROUTE:
            return self._first_link(scope, _inputs(node)[:1], depth)
        if kind == PRIMITIVE:
            values = node.get("widgets_values") or []
            return Value(values[0]) if values else None
        if kind in self.subgraphs:
            inside = self._inside(scope, node)
            inner = [number for number, link in inside.links.items()
                     if link.target == TO_OUTSIDE and link.target_slot == slot]
            return self._origin_of_link(inside, inner[0], depth + 1) if inner else None
        return Origin(f"{scope.prefix}{node_id}", slot)

    def _first_link(self, scope: Scope, entries: list[Mapping[str, Any]], depth: int) -> Origin | Value | None:
        numbers = [entry.get("link") for entry in entries]
        return self._origin_of_link(scope, numbers[0], depth + 1) if numbers and numbers[0] is not None else None

    def _around(self, scope: Scope, node: Mapping[str, Any], slot: int, depth: int) -> Origin | Value | None:
        """The origin for an output of a bypassed node. An input replaces the output: the input at the same position if
        it has the output's type, else the first input with that type."""
        outputs, inputs = list(node.get("outputs") or []), _inputs(node)
        kind = outputs[slot].get("type") if slot < len(outputs) else None
        for entry in [*inputs[slot:slot + 1], *inputs]:
            if entry.get("type") == kind:
                return self._first_link(scope, [entry], depth)
        return None

    def _from_outside(self, scope: Scope, slot: int, depth: int) -> Origin | Value | None:
        """The origin of a subgraph's input, which is the origin of the link into the node that uses the subgraph. If
        there is no such link, the value of that node's widget."""
        entries = _inputs(scope.node)
        if scope.outer is None or slot >= len(entries):
            return None
        entry = entries[slot]
        if entry.get("link") is not None:
            return self._origin_of_link(scope.outer, entry["link"], depth + 1)
        values, names = scope.node.get("widgets_values") or [], _widget_names(scope.node)
        if entry["name"] in names and isinstance(values, list) and names.index(entry["name"]) < len(values):
            return Value(values[names.index(entry["name"])])
        return None


def _is_widget(name: str, spec: Input, named: set[str]) -> bool:
    """Whether the editor shows a widget for an input."""
    if spec.options.get("forceInput"):
        return False
    return name in named or spec.type in WIDGETS


def _has_control(name: str, spec: Input) -> bool:
    return bool(spec.options.get("control_after_generate")) or spec.type == "INT" and name in ("seed", "noise_seed")


def _is_control(value: Any, following: Optional[Input]) -> bool:
    """Whether a value belongs to the control beside a seed. Old editors saved it as true or false."""
    if isinstance(value, bool):
        return following is None or following.type != "BOOLEAN"
    return value in CONTROLS


def _literal(value: Any) -> Any:
    """The value in a form that ComfyUI does not take for a link."""
    return {"__value__": value} if isinstance(value, list) else value


def from_ui(document: Mapping[str, Any], classes: Classes) -> Graph:
    """Converts a saved workflow to API format. LoopError names each node that cannot be converted."""
    return Converter(document, classes).run()
