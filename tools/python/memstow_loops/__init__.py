"""Loops in ComfyUI: runs that give their values to the next run.

    import memstow_loops

    memstow_loops.run_sequential([workflow], {"seed": 1}, iterations=20,
                                 condition={"port": "score", "op": ">", "value": 0.9},
                                 server="http://127.0.0.1:8188")

Within ComfyUI, leave `server` out. In: workflows with ports, and values for their INPUT ports. Out: the values of their
OUTPUT ports. The package needs a ComfyUI with memstow's node pack, started by `memstow run`. docs/loops.md is the
guide."""
from __future__ import annotations

import os
import pathlib
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, Protocol

from . import wire as wire
from .client import client_of
from .conditions import OPERATORS
from .convert import from_ui
from .driver import Loop, Loops, Outcome
from .graph import (Classes, ClassesHere, InfoClasses, LoopError, checked, document_at, document_of, fault_of_text,
                    is_ui, readable)
from .plan import Plan, make_plan
from .ports import Port, Ports, find_ports
from .stitch import stitch

__all__ = ["ClassesHere", "Loop", "LoopError", "Loops", "OPERATORS", "Outcome", "Port", "Ports", "convert_workflow",
           "discover_ports", "run_sequential", "start_loop", "stitch_workflows"]

MOST_NAME, MOST_NAME_BYTES = 100, 127 # limits of a loop's name: characters; bytes, for the store
NO_PACK = ("loops run in a ComfyUI that has memstow's node pack and was started under memstow: memstow run -- python "
           "main.py …. "
           "From another process, say which one: server=\"http://127.0.0.1:8188\"")


class Pack(Protocol):
    """The functions that the node pack provides."""

    loops: Loops

    def saved(self, name: str) -> Mapping[str, Any]: ...
    def may_wait(self) -> str: ...
    def may_start(self) -> str: ...


_pack: Optional[Pack] = None


def serve(pack: Optional[Pack]) -> None:
    """Makes the node pack run loops from now on. None: there is no node pack to run them."""
    global _pack
    _pack = pack


def classes_of(where: Any = None) -> Classes:
    """Node classes: the given ones, those of a server's /object_info, or those of the ComfyUI in this process."""
    if where is not None:
        classes: Classes = InfoClasses(where) if isinstance(where, Mapping) else where
        return classes
    table = getattr(sys.modules.get("nodes"), "NODE_CLASS_MAPPINGS", None)
    if table is None:
        raise LoopError("outside of ComfyUI the node classes have to be given: classes=, what GET /object_info answers")
    return ClassesHere(table)


def workflow_of(what: Any, saved: Optional[Callable[[str], Mapping[str, Any]]] = None) -> tuple[Any, str]:
    """A workflow, and its name if it has one, from a document, JSON text, a path, or the name of a saved workflow."""
    if isinstance(what, Mapping):
        return what, ""
    if isinstance(what, str) and not what.lstrip().startswith("{") and saved is not None:
        try:
            return saved(what), what
        except ValueError as error:
            raise LoopError(str(error)) from None
    if not isinstance(what, (str, os.PathLike)):
        raise LoopError("a workflow is an object, JSON text, a path or the name of a saved one; not of type "
                        f"{type(what).__name__}")
    if isinstance(what, str) and what.lstrip().startswith("{"):
        return document_of(what, "the workflow"), ""
    return document_at(pathlib.Path(what), os.fspath(what)), pathlib.Path(what).stem


def convert_workflow(workflow: Any, classes: Any = None) -> dict[str, Any]:
    """The workflow in API format. The argument is a workflow that the editor has saved, or a workflow in API format,
    which is only checked. LoopError names what cannot be converted: nodes of an unknown class, and group nodes."""
    document, _name = workflow_of(workflow)
    with readable():
        return from_ui(document, classes_of(classes)) if is_ui(document) else checked(document)


def discover_ports(workflow: Any, classes: Any = None) -> Ports:
    """The ports of a workflow, each with node, id, mode, tags and type; the order in which all nodes run; and warnings.
    Raises LoopError for a cycle, an unknown class, a port without id or connections, or two ports with the same id and
    mode; the text names the nodes. `classes` is the answer to GET /object_info; within ComfyUI it may be left out."""
    known = classes_of(classes)
    with readable():
        return find_ports(convert_workflow(workflow, known), known)


def stitch_workflows(workflows: Sequence[Any], classes: Any = None) -> dict[str, Any]:
    """Makes one workflow of several. An OUTPUT port feeds the INPUT port with its id in a later workflow, and both
    become a wire; other ports stay ports. If all workflows were saved by the editor, the editor can open the result.
    Workflows that would overlap earlier workflows are moved to the right. If any workflow is in API format, the result
    is in API format, too. LoopError: types that do not match."""
    with readable():
        return stitch([workflow_of(one)[0] for one in workflows], classes_of(classes))


def _check_options(name: Any, use_ram: Any, ram_limit: Any, persist_prefix: Any) -> None:
    if not isinstance(name, str) or len(name) > MOST_NAME:
        raise LoopError(f"name is a text of at most {MOST_NAME} characters")
    if fault := fault_of_text(name, MOST_NAME_BYTES):
        raise LoopError(f"name {fault}")
    if not isinstance(use_ram, bool):
        raise LoopError("use_ram is true or false")
    if ram_limit is not None and (not isinstance(ram_limit, int) or isinstance(ram_limit, bool) or ram_limit < 1):
        raise LoopError("ram_limit is a number of bytes above 0")
    if persist_prefix is not None and (not isinstance(persist_prefix, str) or not persist_prefix):
        raise LoopError("persist_prefix is a text that is not empty")


def start_loop(workflows: Sequence[Any], inputs: Optional[Mapping[str, Any]] = None, iterations: int = 1,
               condition: Any = None, when: Any = None, use_ram: bool = True, ram_limit: Optional[int] = None,
               persist_prefix: Optional[str] = None,
               independent: bool = False, *, name: str = "") -> Loop:
    """Like run_sequential() within ComfyUI, but returns the loop at once. The loop has wait(), result(), cancel() and
    close(). Its values stay until it is closed. Any thread except the server's may call this function."""
    pack = _pack
    if pack is None:
        raise LoopError(NO_PACK)
    if reason := pack.may_start():
        raise LoopError(reason)
    _check_options(name, use_ram, ram_limit, persist_prefix)
    found = [workflow_of(one, pack.saved) for one in workflows]
    names = {number: text for number, (_one, text) in enumerate(found) if text}

    def make(**more: Any) -> Plan:
        return make_plan([one for one, _text in found], inputs, iterations, condition=condition, when=when,
                         independent=independent, classes=pack.loops.host.classes, names=names, **more)
    with readable():
        return pack.loops.start(make, name, use_ram=use_ram, ram_limit=ram_limit, persist_prefix=persist_prefix)


def run_sequential(workflows: Sequence[Any], inputs: Optional[Mapping[str, Any]] = None, iterations: int = 1,
                   condition: Any = None, when: Any = None, use_ram: bool = True, ram_limit: Optional[int] = None,
                   persist_prefix: Optional[str] = None,
                   independent: bool = False, *, name: str = "", server: Optional[str] = None) -> dict[str, Any]:
    """Runs workflows one after the other, `iterations` times, and returns the last committed value of each OUTPUT port.

    The value for an INPUT port comes from an earlier workflow of this iteration, else from the last commit, else from
    `inputs`. `condition` stops the loop if it is true after an iteration. `when` has an entry for each workflow: None,
    or a condition that decides whether the workflow runs in this iteration. A condition is {"port", "op", "value"}, or,
    within ComfyUI, a callable that takes the values by port. The loop's values are in memory; with use_ram=False, or
    above `ram_limit` bytes, they are in a file. With `persist_prefix` the values outlive the process, and the same call
    continues after the last committed iteration. With `independent`, inputs are lists, each iteration takes one
    element, and outputs are lists, with None for each failed element.

    Raises LoopError if the loop is refused before anything is queued, and if it later fails or is cancelled. In the
    second case the text names the iteration, workflow and node, as far as they are known. The call waits for the loop's
    end. The threads of ComfyUI's worker and server must not call it; they use start_loop() instead."""
    options = {"inputs": dict(inputs or {}), "iterations": iterations, "condition": condition, "when": when,
               "use_ram": use_ram, "ram_limit": ram_limit, "persist_prefix": persist_prefix, "independent": independent,
               "name": name}
    client = client_of(server)
    if client is not None:
        if callable(condition) or any(callable(one) for one in (when if isinstance(when, (list, tuple)) else [when])):
            raise LoopError('a server takes no callables: use {"port": "…", "op": "…", "value": …}')
        return client.run([one if isinstance(one, str) else workflow_of(one)[0] for one in workflows], **options)
    if _pack is None:
        raise LoopError(NO_PACK)
    if reason := _pack.may_wait():
        raise LoopError(reason)
    loop = start_loop(workflows, **options)
    del inputs # the store has the inputs now: without these references no input is in memory twice
    options.clear()
    try:
        while not loop.wait(threading.TIMEOUT_MAX):
            pass
        return loop.result()
    finally:
        _pack.loops.drop(loop)
