"""Ports: the places where values come into a workflow and leave it. In: a workflow and the node classes. Out: its ports
with mode, tags and type, and the order in which its nodes run. Never guesses: if something has two meanings, an error
names the nodes."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .graph import (ANY, Classes, Graph, LoopError, class_of, consumers, fault_of_text, links_of, name_of, order,
                    types_meet)

PORT, COMBO = "DiscomfortPort", "COMBO"
INPUT, OUTPUT, PASSTHRU = "INPUT", "OUTPUT", "PASSTHRU"
OURS = "memstow:"    # the beginning of ids that this package gives to values of its own
MOST_ID = 176        # most bytes of an id. The limit leaves space for OURS and an element's number, such as [999936:]
VALUE = "input_data" # the input for the port's value; its id and tags are inputs, too


@dataclass(frozen=True)
class Port:
    node: str
    id: str
    mode: str             # INPUT, OUTPUT or PASSTHRU
    type: str             # ComfyUI's word; "*" if it is not known
    tags: tuple[str, ...] = ()
    options: Any = None   # for an INPUT, the choices that all its COMBO consumers have; None if they are not known

    def document(self) -> dict[str, Any]:
        return {"node": self.node, "id": self.id, "mode": self.mode, "type": self.type, "tags": list(self.tags)}


@dataclass
class Ports:
    ports: list[Port]
    order: list[str]      # an order in which all nodes can run
    warnings: list[str] = field(default_factory=list)

    def of(self, *modes: str) -> dict[str, Port]:
        """The ports of these modes by id."""
        return {port.id: port for port in self.ports if port.mode in modes}

    def shown(self) -> dict[str, Port]:
        """The ports whose values are visible from outside: the outputs, and wires with an id that no output has."""
        return {**self.of(PASSTHRU), **self.of(OUTPUT)}

    def document(self) -> dict[str, Any]:
        return {"ports": [port.document() for port in self.ports], "order": self.order, "warnings": self.warnings}


def _id_of(graph: Graph, node_id: str) -> str:
    value = graph[node_id]["inputs"].get("unique_id")
    if not isinstance(value, str) or not value.strip():
        raise LoopError(f"{name_of(node_id, graph[node_id])}: unique_id must be a text that is not empty")
    if fault := fault_of_text(value, MOST_ID):
        raise LoopError(f"{name_of(node_id, graph[node_id])}: unique_id {fault}")
    if value.strip().startswith(OURS):
        raise LoopError(f"{name_of(node_id, graph[node_id])}: ids that begin with {OURS} are memstow's own")
    return value.strip()


def _tags_of(graph: Graph, node_id: str) -> tuple[str, ...]:
    value = graph[node_id]["inputs"].get("tags")
    return tuple(tag.strip() for tag in value.split(",") if tag.strip()) if isinstance(value, str) else ()


class _Types:
    """Follows links through ports, which take any type, to nodes with declared types. The type that a port gives, and
    the nodes that take its value, are found only once for each port. So a long chain of ports costs little."""

    def __init__(self, graph: Graph, classes: Classes, nodes: list[str]) -> None:
        self.graph, self.classes = graph, classes
        self.taking = consumers(graph)
        self.warnings: list[str] = []
        self.of_port: dict[str, str] = {}  # the type that a port gives, from its source
        # for each port, the nodes that take its value: (type, choices as text) → (the first node that takes this type
        # with these choices, the name of its input, the choices)
        self.takers: dict[str, dict[tuple[str, str], tuple[str, str, Any]]] = {}
        ports = [node_id for node_id in nodes if graph[node_id]["class_type"] == PORT]
        for node_id in ports:
            source = self.source(node_id)
            self.of_port[node_id] = self.given(*source) if source else ANY
        for node_id in reversed(ports):
            self.takers[node_id] = self._takers(node_id)

    def given(self, node_id: str, slot: int) -> str:
        """The type of a node's output."""
        outputs = class_of(self.graph, node_id, self.classes).outputs
        if slot >= len(outputs) or slot < 0:
            raise LoopError(f"{name_of(node_id, self.graph[node_id])} has no output {slot}: it has {len(outputs)}")
        return self.of_port.get(node_id, outputs[slot])

    def source(self, node_id: str) -> tuple[str, int] | None:
        """The node and output that a port's value comes from. None: the port has no source."""
        return next(((source, slot) for name, source, slot in links_of(self.graph[node_id]) if name == VALUE), None)

    def _takers(self, node_id: str) -> dict[tuple[str, str], tuple[str, str, Any]]:
        """The nodes that take a port's value, directly or through other ports: for each type and its choices, the first
        such node."""
        found: dict[tuple[str, str], tuple[str, str, Any]] = {}
        for taker, name, _slot in self.taking[node_id]:
            if taker in self.takers:
                found = {**self.takers[taker], **found}
                continue
            spec = class_of(self.graph, taker, self.classes).inputs.get(name)
            if spec is not None and spec.type != ANY:
                choices = spec.options.get("options")
                found.setdefault((spec.type, _text_of(choices)), (taker, name, choices))
        return found

    def taken(self, node_id: str, port: str) -> str:
        """The type that a port should get: a type that all its consumers take. If there is no such type, "*" and a
        warning."""
        found: dict[str, str] = {}
        for (kind, _text), (taker, name, _choices) in self.takers[node_id].items():
            found.setdefault(kind, f"{name_of(taker, self.graph[taker])} takes {kind} at {name}")
        if not found:
            return ANY
        words = [[word.strip() for word in kind.split(",")] for kind in found]
        common = [word for word in words[0] if all(types_meet(word, kind) for kind in found)]
        if not common:
            self.warnings.append(f"port {port} feeds inputs that disagree: {'; '.join(found.values())}")
        return ",".join(common) or ANY

    def choices(self, node_id: str, port: str) -> Any:
        """The choices that all COMBO consumers of a port have in common. None if no consumer has a list. Adds a warning
        if the lists differ."""
        lists = [(f"{name_of(taker, self.graph[taker])} at {name}", choices)
                 for (kind, _text), (taker, name, choices) in self.takers[node_id].items() if kind == COMBO and choices]
        if len(lists) > 1:
            self.warnings.append(f"port {port} feeds inputs with different choices: "
                                 f"{'; '.join(where for where, _choices in lists)}")
        return [one for one in lists[0][1] if all(one in choices for _where, choices in lists)] if lists else None


def _text_of(choices: Any) -> str:
    """A text that is the same for lists with the same choices, even if the order of the choices differs."""
    return repr(sorted(map(repr, choices))) if isinstance(choices, (list, tuple)) else ""


def _mode(has_source: bool, has_takers: bool, where: str) -> str:
    if has_source and has_takers:
        return PASSTHRU
    if has_source:
        return OUTPUT
    if has_takers:
        return INPUT
    raise LoopError(
        f"{where} is connected to nothing: a port is an input, an output or a wire by what it is connected to")


def _check_twins(graph: Graph, ports: list[Port]) -> None:
    seen: dict[tuple[str, str], str] = {}
    for port in ports:
        other = seen.setdefault((port.id, port.mode), port.node)
        if other != port.node:
            raise LoopError(f"{name_of(other, graph[other])} and {name_of(port.node, graph[port.node])} are both the "
                            f"{port.mode} port {port.id}: one of them needs another unique_id")


def find_ports(graph: Graph, classes: Classes) -> Ports:
    """The ports of a workflow in API format; see discover_ports()."""
    nodes = order(graph)
    for node_id in graph:
        class_of(graph, node_id, classes)
    types, found = _Types(graph, classes, nodes), []
    for node_id in nodes:
        if graph[node_id]["class_type"] != PORT:
            continue
        where, source = name_of(node_id, graph[node_id]), types.source(node_id)
        port = _id_of(graph, node_id)
        mode = _mode(source is not None, bool(types.taking[node_id]), where)
        kind = types.of_port[node_id]
        choices = None
        if kind == ANY and types.taking[node_id]:
            kind = types.taken(node_id, port)
            choices = types.choices(node_id, port) if kind == COMBO else None
        found.append(Port(node_id, port, mode, kind, _tags_of(graph, node_id), choices))
    _check_twins(graph, found)
    return Ports(found, nodes, types.warnings)
