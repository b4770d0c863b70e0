"""Who holds an object that should be gone: the Python objects that refer to it, outwards until something has a name — a
variable of a module, an attribute of a class, a local variable of a function that runs. Bounded in the time that the processor
gives this thread: looking at all objects once takes 50 to 100 ms in a ComfyUI, and the longer the more objects are looked for, so
that few are at a time. Other Python threads stand still meanwhile. memstow.held() is for programs, the node pack asks by itself."""
import gc
import json
import sys
import time
import types
from collections.abc import Iterable
from typing import Any, Optional

SECONDS, DEPTH, MOST, WIDE, AT_ONCE = 1.0, 6, 8, 2000, 50
LINE, LONGEST = 3600, 300 # bytes of JSON that a line of the trace has room for, characters of one holder


class Deadline:
    """So many seconds of this thread's processor from now: for one look, however much it asks for."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.end = time.thread_time() + seconds

    def is_over(self) -> bool:
        return time.thread_time() > self.end


def _modules() -> dict:
    """Modules by the id of their dictionary. ComfyUI names those of node packs by their path."""
    return {id(vars(module)): name.replace("_x_", ".").rsplit("/", 1)[-1] for name, module in list(sys.modules.items())
            if isinstance(module, types.ModuleType)}


def _name_in(container: Any, thing: Any) -> str:
    """How a container calls what it refers to: a key, an attribute, an index."""
    if isinstance(container, dict):
        return next((str(key) for key, value in list(container.items()) if value is thing), "a key")
    if isinstance(container, (list, tuple)):
        return next((str(index) for index, value in enumerate(container) if value is thing), "…")
    own = getattr(container, "__dict__", None) or {}
    return next((str(key) for key, value in list(own.items()) if value is thing), "…")


def _step(container: Any, thing: Any, path: str) -> str:
    """The path with one more container in front of it."""
    if isinstance(container, (list, tuple)):
        return f"[{_name_in(container, thing)}]{path}"
    if isinstance(container, dict):
        return f"[{_name_in(container, thing)!r}]{path}"
    if isinstance(container, types.CellType):
        return f" in a closure{path}"
    if isinstance(container, types.FunctionType):
        return f" of function {container.__module__}.{container.__qualname__}{path}"
    if getattr(container, "__dict__", None) is thing: # the path has the attribute already
        return f" → {type(container).__qualname__}{path}"
    return f" → {type(container).__qualname__}.{_name_in(container, thing)}{path}"


def _named(container: Any, thing: Any, path: str, modules: dict) -> str:
    """The whole path, if it begins here; else \"\"."""
    if id(container) in modules:
        return f"{modules[id(container)]}.{_name_in(container, thing)}{path}"
    if isinstance(container, types.FrameType):
        code = container.f_code
        return f"a variable of {code.co_name} ({code.co_filename.rsplit('/', 1)[-1]}:{container.f_lineno}){path}"
    if isinstance(container, type):
        return f"{container.__module__}.{container.__qualname__}{path}"
    if isinstance(container, (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)):
        return f"the coroutine {container.__qualname__}{path}"
    return ""


def holders(target: Any, ignored: Iterable[int] = (), deadline: Optional[Deadline] = None) -> list[str]:
    """What holds the target, one line a holder, those with the shortest path first. `ignored`: ids of objects that do not count,
    because they are the caller's own. Without a deadline it takes SECONDS at most."""
    deadline, modules = deadline or Deadline(), _modules()
    paths, level, seen, found = {id(target): ""}, [target], {id(target)}, []
    ours = {*ignored, id(paths), id(seen), id(found), id(modules), id(sys._getframe())}
    for _depth in range(DEPTH):
        following = []
        ours |= {id(level), id(following)}
        for first in range(0, len(level), AT_ONCE):
            if deadline.is_over():
                return found or _unnamed(following, paths)
            some = level[first:first + AT_ONCE]
            ours.add(id(some))
            around, inside = gc.get_referrers(*some), {id(thing): thing for thing in some}
            ours |= {id(around), id(inside)}
            for container in around:
                if id(container) in ours or id(container) in seen:
                    continue
                seen.add(id(container))
                thing = next((inside[id(t)] for t in gc.get_referents(container) if id(t) in inside), None)
                if thing is None:
                    continue
                name = _named(container, thing, paths[id(thing)], modules)
                if name:
                    found.append(name)
                else:
                    paths[id(container)] = _step(container, thing, paths[id(thing)])
                    following.append(container)
                if len(found) >= MOST or deadline.is_over():
                    return found or _unnamed(following, paths)
            ours -= {id(some), id(around), id(inside)} # their addresses may be others' soon
            some = around = inside = container = thing = None
        if not following:
            break
        ours -= {id(level), id(following)}
        level = following[:WIDE]
    return found or _unnamed(level, paths)


def _unnamed(level: list, paths: dict) -> list[str]:
    """As far as it was followed; the target itself holds nothing."""
    return [f"an object of type {type(thing).__module__}.{type(thing).__qualname__}{paths[id(thing)]}"
            for thing in level[:MOST] if paths.get(id(thing))]


def for_trace(found: Iterable[str]) -> list[str]:
    """Of these lines, each once, as many and as much of each as a HELD line of the trace has room for."""
    lines: list[str] = []
    room = LINE
    for line in dict.fromkeys(text[:LONGEST] for text in found):
        room -= len(json.dumps(line)) + 1
        if len(lines) == MOST or room < 0:
            break
        lines.append(line)
    return lines
