"""Workflows in ComfyUI's API format, and the declarations of node classes. In: JSON documents, and ComfyUI's table of
classes or a server's /object_info. Out: checked graphs, their links and their order. Never changes a document of the
caller's."""
from __future__ import annotations

import contextlib
import copy
import json
import pathlib
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Optional, Protocol, Union

Node = dict[str, Any]
Graph = dict[str, Node]
ANY = "*"


class LoopError(ValueError):
    """A workflow, port or loop that cannot run as requested. The text names the node or the port."""


def fault_of_text(text: str, most: int) -> str:
    """Returns the reason why a text cannot be a loop's name or a port's id, or "" if it can. There are rules because
    names and ids go into the log and into the names of owners."""
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        return "contains half of a character (a lone surrogate)"
    if any(unicodedata.category(letter) == "Cc" for letter in text):
        return "contains a control character, such as the end of a line"
    return f"has more than {most} bytes" if length > most else ""


def document_of(text: Union[str, bytes], name: str) -> dict[str, Any]:
    """The JSON object in a text; `name` stands for the text in messages."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LoopError(f"{name} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise LoopError(f"{name} is not a JSON object")
    return document


def document_at(path: pathlib.Path, name: str) -> dict[str, Any]:
    """The JSON object in a file; `name` stands for the file in messages."""
    try:
        text = path.read_bytes()
    except (OSError, ValueError) as error: # ValueError: a NUL in the path
        raise LoopError(f"{name}: {getattr(error, 'strerror', None) or error}") from None
    return document_of(text, name)


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """Turns errors inside this package into LoopErrors. Only a workflow that no editor writes causes such errors."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError, UnicodeError) as error:
        raise LoopError("this is no workflow as ComfyUI or its editor writes them: "
                        f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True)
class Input:
    """One input of a node class. `type` is ComfyUI's word for the type, or several such words with commas between. The
    word for a list of choices is COMBO."""
    type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    is_required: bool = True


@dataclass(frozen=True)
class NodeClass:
    """The declaration of a node class: its inputs in order, the types of its outputs, and whether it is an output node.
    ComfyUI runs output nodes although no node needs their outputs."""
    inputs: Mapping[str, Input]
    outputs: tuple[str, ...]
    is_output: bool = False


class Classes(Protocol):
    """A source of node classes."""

    def find(self, name: str) -> Optional[NodeClass]:
        """The class with this name; None if it is unknown."""


def type_word(kind: object) -> str:
    """ComfyUI's word for a type. If the type is a list of choices, the word is COMBO."""
    return "COMBO" if isinstance(kind, (list, tuple)) else str(kind)


def inputs_of(document: Mapping[str, Any]) -> dict[str, Input]:
    """The inputs from the result of INPUT_TYPES(), or from its form in /object_info."""
    found: dict[str, Input] = {}
    for group in ("required", "optional"):
        for name, spec in (document.get(group) or {}).items():
            parts = spec if isinstance(spec, (list, tuple)) and spec else [spec]
            options = dict(parts[1]) if len(parts) > 1 and isinstance(parts[1], Mapping) else {}
            if isinstance(parts[0], (list, tuple)):
                options["options"] = list(parts[0])
            found[name] = Input(type_word(parts[0]), options, group == "required")
    return found


class InfoClasses:
    """Classes from a server's answer to GET /object_info."""

    def __init__(self, info: Mapping[str, Any]) -> None:
        self.info = info

    def find(self, name: str) -> Optional[NodeClass]:
        found = self.info.get(name)
        if not isinstance(found, Mapping):
            return None
        return NodeClass(inputs_of(found.get("input") or {}),
                         tuple(type_word(kind) for kind in found.get("output") or ()), bool(found.get("output_node")))


class ClassesHere:
    """The classes of the ComfyUI in this process. Each class is asked only once, because some classes read folders for
    their answer."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self.table = table
        self.asked: dict[str, NodeClass] = {}

    def find(self, name: str) -> Optional[NodeClass]:
        if name not in self.asked and name in self.table:
            try:
                self.asked[name] = _declared(self.table[name])
            except Exception as error: # the code of another pack may raise anything
                raise LoopError(f"the node class {name} does not say what it takes and gives: {type(error).__name__}: "
                                f"{error}") from error
        return self.asked.get(name)


def _declared(found: Any) -> NodeClass:
    outputs = getattr(found, "RETURN_TYPES", None) or ()
    return NodeClass(inputs_of(found.INPUT_TYPES()), tuple(type_word(kind) for kind in outputs),
                     bool(getattr(found, "OUTPUT_NODE", False)))


def one_line(text: str) -> str:
    """A text as one line for the log, so that the author of a workflow cannot forge lines of the log. A lone surrogate
    (half of a character) is escaped, because it cannot be written."""
    line = "".join(" " if unicodedata.category(letter) in ("Cc", "Zl", "Zp") else letter for letter in text)
    return line.encode(errors="backslashreplace").decode()


def name_of(node_id: str, node: Node) -> str:
    """The name of a node in messages: its id, class and title."""
    title = (node.get("_meta") or {}).get("title")
    class_type = node.get("class_type", "?")
    return one_line(f"node {node_id} ({class_type}{f', “{title}”' if title and title != class_type else ''})")


def is_link(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and isinstance(value[0], (str, int)) \
        and isinstance(value[1], int) and not isinstance(value[0], bool)


def links_of(node: Node) -> Iterator[tuple[str, str, int]]:
    """(input, source node, output of the source node) for each link into a node."""
    for name, value in node["inputs"].items():
        if is_link(value):
            yield name, str(value[0]), value[1]


def is_ui(document: object) -> bool:
    """Whether a document is in the format that the editor saves."""
    return isinstance(document, Mapping) and isinstance(document.get("nodes"), list)


def _is_node(what: object) -> bool:
    return isinstance(what, Mapping) and isinstance(what.get("class_type"), str)


def checked(document: object) -> Graph:
    """A copy of a workflow in API format, with ids as text. LoopError if the document is no such workflow."""
    nodes = document
    if isinstance(document, Mapping) and "prompt" in document and not _is_node(document["prompt"]):
        nodes = document["prompt"] # the body of POST /prompt
    if not isinstance(nodes, Mapping) or not nodes:
        raise LoopError("this is no workflow: neither ComfyUI's API format nor what its editor saves")
    graph: Graph = {}
    for key, node in nodes.items():
        if not isinstance(node, Mapping) or not isinstance(node.get("class_type"), str) \
                or not isinstance(node.get("inputs", {}), Mapping):
            raise LoopError(
                f"node {key} has no class_type, or its inputs are no object: this is no workflow in API format")
        graph[str(key)] = copy.deepcopy({**node, "inputs": dict(node.get("inputs", {}))})
    for node_id, node in graph.items():
        for name, source, slot in list(links_of(node)):
            if source in graph:
                node["inputs"][name][0] = source
                if slot < 0: # ComfyUI would count from the end
                    raise LoopError(f"{name_of(node_id, node)}: its input {name} comes from output {slot} of node "
                                    f"{source}")
            elif isinstance(node["inputs"][name][0], str):
                raise LoopError(
                    f"{name_of(node_id, node)}: its input {name} comes from node {source}, which is not there")
    return graph


def class_of(graph: Graph, node_id: str, classes: Classes) -> NodeClass:
    """The class of a node. Raises LoopError, with the node's name, if the class is unknown."""
    node = graph[node_id]
    found = classes.find(node["class_type"])
    if found is None:
        raise LoopError(f"{name_of(node_id, node)}: no node class of this name is installed")
    return found


def consumers(graph: Graph) -> dict[str, list[tuple[str, str, int]]]:
    """For each node, the nodes that take its outputs: (node, input, output)."""
    found: dict[str, list[tuple[str, str, int]]] = {node_id: [] for node_id in graph}
    for node_id, node in graph.items():
        for name, source, slot in links_of(node):
            if source in graph:
                found[source].append((node_id, name, slot))
    return found


def downstream(graph: Graph, starts: set[str]) -> set[str]:
    """These nodes, and all nodes that depend on them, directly or not."""
    taking, found, queue = consumers(graph), set(starts), list(starts)
    while queue:
        for node_id, _name, _slot in taking[queue.pop()]:
            if node_id not in found:
                found.add(node_id)
                queue.append(node_id)
    return found


def _cycle(graph: Graph, left: set[str]) -> list[str]:
    """A cycle among nodes that all wait for each other."""
    path = [min(left)]
    while True:
        before = min(source for _name, source, _slot in links_of(graph[path[-1]]) if source in left)
        if before in path:
            return [before, *path[path.index(before):][::-1]]
        path.append(before)


def order(graph: Graph) -> list[str]:
    """The nodes, each after the nodes that it depends on. LoopError names the nodes of a cycle."""
    waits = {node_id: {source for _name, source, _slot in links_of(node) if source in graph}
             for node_id, node in graph.items()}
    taking, found = consumers(graph), []
    ready = [node_id for node_id, sources in waits.items() if not sources]
    for node_id in ready: # the list grows during the iteration
        found.append(node_id)
        for other in dict.fromkeys(taken[0] for taken in taking[node_id]):
            waits[other].discard(node_id)
            if not waits[other]:
                ready.append(other)
    if len(found) < len(graph):
        cycle = _cycle(graph, set(graph) - set(found))
        raise LoopError(f"{name_of(cycle[0], graph[cycle[0]])} is in a cycle: {' → '.join(cycle)}")
    return found


def types_meet(given: str, taken: str) -> bool:
    """Whether an output of one type may go into an input of another. As in ComfyUI, the two types must share a word, or
    one is a wildcard."""
    words = [{word.strip() for word in kind.split(",")} for kind in (given, taken)]
    return ANY in words[0] or ANY in words[1] or bool(words[0] & words[1])
