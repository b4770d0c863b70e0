"""Finds what holds an object that should be gone. The search goes from the object outwards, over the Python objects
that refer to it, until an object has a name: a variable of a module, an attribute of a class, or a variable of a
function that runs on some thread. In: objects. Out: for each object the places that keep it, and the package or node
pack of each place.

The search never changes the objects, and has a limit in processor time of this thread. One pass over all objects takes
100 ms in a ComfyUI, and more if the holders of many objects are looked for at once. Other Python threads wait
meanwhile.
memstow.held() uses this module for programs, memstow_blocks.py for leaks, and the node pack for its models."""
import contextvars
import ctypes
import functools
import gc
import itertools
import json
import os
import sys
import sysconfig
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Optional

# Limits of a search for the holders of some objects, the targets. SECONDS: its processor time. DEPTH: how many steps it
# goes outwards. MOST: how many holders it reports for a target. PATHS: how many paths it keeps for a target. WIDE: for
# how many objects one step looks for holders. AT_ONCE: how many of these objects one pass over all objects handles.
SECONDS, DEPTH, MOST, PATHS, WIDE, AT_ONCE = 1.0, 12, 8, 64, 2000, 50
# limits of a HELD line of the trace. LINE: bytes of JSON for all holders. PLACES: bytes of JSON for all `other_places`.
# LONGEST: characters of one holder. KEY: characters of a key in a holder. NAME: characters of a pack or of a place
LINE, PLACES, LONGEST, KEY, NAME = 2400, 600, 300, 60, 100

# Ranks of code. Each rank stands for a kind of owner. In this file, the owner of code is the node pack, program or
# library that the code belongs to. The code of the lowest rank is the most likely to be at fault.
PACK, APPLICATION, LIBRARY, STANDARD, OURS = range(5)


class Deadline:
    """A limit in seconds of this thread's processor time, counted from now, for one search."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.end = time.thread_time() + seconds

    def is_over(self) -> bool:
        return time.thread_time() > self.end


# ---- looking at objects without running their code. isinstance() and vars() read __class__ and __dict__, and may
# thereby run code of the object

def is_a(thing: Any, kinds: Any) -> bool:
    return issubclass(type(thing), kinds)


def dictionary(thing: Any) -> dict[Any, Any]:
    """The object's __dict__, if it is a dictionary that exists already."""
    try:
        own = object.__getattribute__(thing, "__dict__")
    except AttributeError:
        return {}
    return own if type(own) is dict else {}


def modules() -> list[tuple[str, types.ModuleType]]:
    return [(name, module) for name, module in list(sys.modules.items()) if is_a(module, types.ModuleType)]


# ---- the owner of a module, function or class

HERE = os.path.dirname(os.path.abspath(__file__))
OUR_FILES = (os.path.join(HERE, "memstow"), os.path.join(os.path.dirname(HERE), "comfyui") + os.sep)
STANDARD_FOLDERS = tuple({sysconfig.get_path(name) + os.sep for name in ("stdlib", "platstdlib")})


@functools.lru_cache(maxsize=10_000)
def of_file(file: str, module: str) -> tuple[int, str]:
    """The owner of the code in this file: a rank, and a name. A node pack is a folder or a file in custom_nodes."""
    top = tidy(module).split(".")[0]
    if not file or file.startswith("<"):
        return (STANDARD,
                top) if module in sys.builtin_module_names or file.startswith("<frozen") else (APPLICATION, top)
    path = os.path.abspath(file)
    if os.path.realpath(path).startswith(OUR_FILES):
        return OURS, "memstow"
    if "/custom_nodes/" in path:
        name = path.rsplit("/custom_nodes/", 1)[1].split("/")[0]
        return PACK, name.removesuffix(".py")
    for folder in ("/site-packages/", "/dist-packages/"):
        if folder in path:
            return LIBRARY, top
    if path.startswith(STANDARD_FOLDERS):
        return STANDARD, top
    return APPLICATION, os.path.basename(path) if top == "__main__" else top


def of_module(name: Any) -> tuple[int, str]:
    name = name if type(name) is str else ""
    file = dictionary(sys.modules.get(name)).get("__file__")
    if type(file) is not str:
        file = "<frozen>" if name not in sys.modules or name in sys.builtin_module_names else ""
    return of_file(file, name)


def of_code(code: types.CodeType, module: str) -> tuple[int, str]:
    return of_file(code.co_filename, module)


def tidy(module: Any) -> str:
    """The name of a module as people know it. ComfyUI names the module of a node pack by its path. Only the last part
    of such a path stays."""
    return str(module).replace("_x_", ".").rsplit("/", 1)[-1]


# ---- running functions. Their variables are searched here: from Python 3.11 on, the garbage collector finds no object
# that refers to them

_pointer = ctypes.c_void_p
_NAMES_TAKEN = 72 # CPython 3.11: offset of the variables in the interpreter's frame; the code is at 32


def _variables_311(frame: types.FrameType) -> Iterator[tuple[str, int]]:
    """(name, id) of each variable. Does not read f_locals, which would make a dictionary that keeps the objects
    alive."""
    code = frame.f_code
    inner = _pointer.from_address(id(frame) + 24).value
    if not inner or _pointer.from_address(inner + 32).value != id(code):
        return
    for number in range(len(code.co_varnames) + len(code.co_cellvars) + len(code.co_freevars)):
        try:
            name = code._varname_from_oparg(number) # type: ignore[attr-defined] # CPython's own
        except IndexError: # there are fewer: a variable that is also a cell counts once
            return
        value = _pointer.from_address(inner + _NAMES_TAKEN + 8 * number).value
        if value:
            yield name, value


def _variables_312(frame: types.FrameType) -> Iterator[tuple[str, int]]:
    code, get = frame.f_code, ctypes.pythonapi.PyFrame_GetVar
    get.restype, get.argtypes = ctypes.py_object, (ctypes.py_object, ctypes.py_object)
    for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
        try:
            yield name, id(get(frame, name))
        except NameError: # the variable has no value now
            continue


def variables(frame: types.FrameType) -> Iterator[tuple[str, int]]:
    """(name, id) of the variables of a running function."""
    if not frame.f_code.co_flags & 1: # a module or class: its variables are in a dictionary, which the search finds
        return iter(())
    if sys.version_info >= (3, 13): # a view, which keeps nothing alive
        return ((name, id(value)) for name, value in frame.f_locals.items())
    if sys.version_info >= (3, 12):
        return _variables_312(frame)
    if sys.version_info >= (3, 11):
        return _variables_311(frame)
    return (("…", id(value)) for value in gc.get_referents(frame))


class Place(NamedTuple):
    """A variable of a running function."""
    frame: types.FrameType
    name: str
    thread: str


def is_ours(frame: types.FrameType) -> bool:
    return of_code(frame.f_code, "")[0] == OURS


def running(ignored: set[int]) -> dict[int, list[Place]]:
    """Variables of all frames, by the id of the object that they refer to. Frames of memstow's own functions, and
    frames whose ids are in `ignored`, are left out."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found: dict[int, list[Place]] = {}
    for ident, innermost in sys._current_frames().items():
        frame: Optional[types.FrameType] = innermost
        while frame is not None:
            if id(frame) not in ignored and not is_ours(frame):
                for name, value in variables(frame):
                    found.setdefault(value, []).append(Place(frame, name, names.get(ident, "")))
            frame = frame.f_back
        del innermost # it may be this function's own frame, which would keep itself and all objects of the search alive
    return found


# ---- names for the steps from a holder to the object

def _is_simple(key: Any) -> bool:
    return type(key) in (str, int, float, bool, bytes, type(None)) or type(key) is tuple and all(map(_is_simple, key))


def _key(container: dict[Any, Any], thing: Any) -> str:
    found = next((key for key, value in list(container.items()) if value is thing), None)
    if found is None:
        return "[a key]"
    words = repr(found) if _is_simple(found) else f"<{type(found).__name__}>"
    return f"[{words if len(words) <= KEY else words[:KEY] + '…'}]"


def _index(container: Any, thing: Any) -> str:
    return next((f"[{index}]" for index, value in enumerate(container) if value is thing), "[…]")


def _attribute(holder: Any, thing: Any) -> str:
    """The attribute of an instance that holds the thing; computed attributes are not looked at."""
    name = next((str(key) for key, value in list(dictionary(holder).items()) if value is thing), "")
    for kind in type(holder).__mro__ if not name else ():
        for slot, member in list(type.__dict__["__dict__"].__get__(kind).items()):
            if type(member) is types.MemberDescriptorType and _slot(member, holder) is thing:
                return f".{slot}"
    return f".{name}" if name else ""


def _slot(member: types.MemberDescriptorType, holder: Any) -> Any:
    try:
        return member.__get__(holder, type(holder))
    except AttributeError:
        return None


COROUTINES = {types.GeneratorType: ("generator", "gi"), types.CoroutineType: ("coroutine", "cr"),
              types.AsyncGeneratorType: ("generator", "ag")}
FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools._lru_cache_wrapper, type,
             *COROUTINES)


def _name_of(function: Any) -> str:
    return str(getattr(function, "__qualname__", "…")) if is_a(function, FUNCTIONS) else type(function).__qualname__


def _full_name(function: Any) -> str:
    owner = function if is_a(function, FUNCTIONS) else type(function)
    return f"{tidy(getattr(owner, '__module__', None) or 'builtins')}.{_name_of(function)}"


# types whose objects call a function later → the attribute that holds this function
CALLS = {threading.Timer: "function"}


def _called(thing: Any) -> Any:
    """The function that this object calls later. None: it calls none."""
    return dictionary(thing).get(CALLS[type(thing)]) if type(thing) in CALLS else None


def _module_of(function: Any) -> Any:
    return getattr(function if is_a(function, FUNCTIONS) else type(function), "__module__", None)


def _line_of(code: types.CodeType, line: Optional[int]) -> str:
    return f"{code.co_filename.rsplit('/', 1)[-1]}:{line or code.co_firstlineno}"


def _of_function(function: types.FunctionType, part: Any, then: Any) -> str:
    """The words for the step from a function to `part`: its closure, its defaults and so on. `then`: the object that
    `part` refers to."""
    code = function.__code__
    if part is function.__closure__ and part is not None:
        names = [name for name, cell in zip(code.co_freevars, part) if cell is then]
        return f" → variable {names[0] if names else '…'} in the closure of {_name_of(function)}"
    if part is function.__defaults__ and part is not None:
        names = [name for name, value in zip(code.co_varnames[:code.co_argcount][::-1], part[::-1]) if value is then]
        return f" → default of argument {names[0] if names else '…'} of {_name_of(function)}"
    if part is function.__kwdefaults__:
        return f" → defaults of {_name_of(function)}"
    if part is function.__dict__:
        return f" → attribute of {_name_of(function)}"
    return f" → function {_name_of(function)}"


def _of_coroutine(thing: Any) -> str:
    word, prefix = COROUTINES[type(thing)]
    code, frame = getattr(thing, f"{prefix}_code"), getattr(thing, f"{prefix}_frame")
    return f" → {word} {_name_of(thing)} ({_line_of(code, frame.f_lineno if frame is not None else None)})"


def _step(holder: Any, thing: Any, then: Any) -> str:
    """The words for the step from a holder to a thing. `then` is the object that comes after the thing on the path to
    the target, or None if the thing is the target."""
    kind = type(holder)
    if is_a(holder, dict):
        return _key(holder, thing)
    if kind in (list, tuple):
        return _index(holder, thing)
    if is_a(holder, (set, frozenset)):
        return "{…}"
    if kind is types.FunctionType:
        return _of_function(holder, thing, then)
    if kind is types.CellType:
        return ""
    if kind in COROUTINES:
        return _of_coroutine(holder)
    if kind is types.FrameType:
        return f" → frame of {holder.f_code.co_name} ({_line_of(holder.f_code, holder.f_lineno)})"
    if kind is types.TracebackType:
        return "" if type(thing) is types.TracebackType else ".__traceback__"
    if kind is types.MethodType:
        return f" → method {_name_of(holder)}"
    if kind is functools._lru_cache_wrapper:
        return f" → lru_cache of {_name_of(holder)}"
    if kind is functools.partial:
        return f" → partial of {_name_of(holder.func)}"
    if is_a(holder, weakref.ReferenceType):
        return " → callback of a weak reference"
    if kind is _FINALIZER:
        return f" → weakref.finalize that calls {_full_name(holder.func)}"
    if kind in CALLS:
        return f" → threading.{kind.__name__} that calls {_full_name(_called(holder))}"
    if _has_objects(holder):
        return _index(holder.flat, thing)
    if is_a(holder, BaseException):
        return f" → {kind.__qualname__}"
    if (part := _part(holder, thing)) is not None:
        return f".{part}"
    return f" → {kind.__qualname__}{_attribute(holder, thing) or _attribute(holder, then)}"


_FINALIZER = weakref.finalize._Info # type: ignore[attr-defined] # CPython's own


def _is_said(holder: Any, thing: Any, before: Any) -> bool:
    """Whether this holder needs no name of its own, because the previous step has named the instance, class or function
    that it belongs to. For example, the dictionary of a named instance needs no name."""
    if before is None or type(holder) not in (dict, tuple):
        return False
    if type(before) is types.FunctionType:
        return True
    if is_a(before, type):
        return type(holder) is dict
    return type(holder) is dict and not is_a(before, (dict, list, tuple)) and dictionary(before) is holder


# ---- parts of torch's modules. A weight may be twenty dictionaries deep in its model, more than the steps of a search
# (DEPTH). So a search goes from a part to the whole model at once.

PARTS = ("_parameters", "_buffers", "_modules")


def _module_type() -> Any:
    torch = sys.modules.get("torch")
    return getattr(getattr(torch, "nn", None), "Module", None)


def _part(holder: Any, thing: Any) -> Optional[str]:
    """The name of `thing` in the torch module `holder`. None if `holder` is no torch module, or `thing` is no part of
    it."""
    if _module_type() is None or not is_a(holder, _module_type()):
        return None
    return next((str(key) for name in PARTS for key,
                 value in (dictionary(holder).get(name) or {}).items() if value is thing), None)


class Models:
    """All torch modules, in the list `modules`. Two tables give indices in this list. `numbers`: the id of a part → the
    modules that have the part. `dictionaries`: the id of a module's dictionary → the module."""

    def __init__(self) -> None:
        kind = _module_type()
        is_module: Callable[[Any], bool] = functools.lru_cache(maxsize=None)(
            lambda one: kind is not None and issubclass(one, kind))
        self.modules = [thing for thing in gc.get_objects() if is_module(type(thing))]
        self.numbers: dict[int, list[int]] = {}
        self.dictionaries: dict[int, int] = {}
        for number, module in enumerate(self.modules):
            own = dictionary(module)
            for some in (own.get(name) for name in PARTS):
                self.dictionaries[id(some)] = number
                for part in (some or {}).values():
                    self.numbers.setdefault(id(part), []).append(number)
            self.dictionaries[id(own)] = number

    def of_dictionary(self, thing: Any) -> Any:
        return self.modules[self.dictionaries[id(
            thing)]] if type(thing) is dict and id(thing) in self.dictionaries else None

    def around(self, thing: Any) -> list[Any]:
        """The modules that have the thing as a part."""
        return [self.modules[number] for number in self.numbers.get(id(thing), ())]


# ---- the path from a name to the object

class Path:
    """The objects on a path, from the outermost to the held object. Each object refers to the next."""

    def __init__(self, things: list[Any], modules: dict[Any, Any], place: Optional[Place] = None) -> None:
        self.things, self.place, self.depth = things, place, len(things)
        self.module = modules.get(id(things[0])) if place is None else None
        self.is_whole = place is not None or self.module is not None or is_a(things[0], type)
        self.beginning = self._whose_beginning()
        self.rank, _likelihood, self.distance, self.pack = min(self._parties())

    def _whose_beginning(self) -> tuple[int, str]:
        if self.place is not None:
            return of_code(self.place.frame.f_code, str(self.place.frame.f_globals.get("__name__", "")))
        return of_module(self.module or self.things[0].__module__) if self.is_whole else (OURS + 1, "")

    def _parties(self) -> Iterator[tuple[int, int, int, str]]:
        """Yields (rank, likelihood, distance, name) for each owner of code on the path. The owner with the smallest
        tuple is taken to be at fault. `likelihood` orders owners of the same rank:
        - 0: functions, generators, coroutines and finalizers on the path, and the running function whose variable the
          path begins with
        - 1: any other beginning of the path
        - 2: classes of objects on the path, and functions that its timers call
        - 3: frames on the path"""
        for distance, thing in enumerate(self.things[-2::-1]):
            for likelihood, (rank, name) in _parties_of(thing):
                yield rank, likelihood, distance, name
        rank, name = self.beginning
        yield rank, 0 if self.place is not None else 1, self.depth, name

    def _beginning(self) -> tuple[str, int]:
        """The name that the path begins with, and how many objects of the path it covers."""
        first = self.things[0]
        if self.place is not None:
            code = self.place.frame.f_code
            thread = f" on thread {self.place.thread}" if self.place.thread else ""
            return (f"variable {self.place.name} of {code.co_name} "
                    f"({_line_of(code, self.place.frame.f_lineno)}){thread}"), 0
        then = self.things[1] if self.depth > 1 else None
        if self.module is not None:
            name = next((str(key) for key, value in list(first.items()) if value is then), "…")
            return f"{tidy(self.module)}.{name}", 1
        if is_a(first, type):
            own = type.__dict__["__dict__"].__get__(first)
            name = next((str(key) for key, value in list(own.items()) if any(value is t for t in self.things[1:3])), "")
            return f"{tidy(first.__module__)}.{first.__qualname__}{'.' + name if name else ''}", 2 if type(
                then) is dict else 1
        return f"an object of type {tidy(type(first).__module__)}.{type(first).__qualname__}", 0

    def words(self) -> str:
        text, at = self._beginning()
        for number in range(at, self.depth - 1):
            holder, thing = self.things[number], self.things[number + 1]
            then = self.things[number + 2] if number + 2 < self.depth else None
            if not _is_said(holder, thing, self.things[number - 1] if number else None):
                text += _step(holder, thing, then)
        return text

    def root(self) -> str:
        """The place of the code at fault, without keys, indices and threads. So it is the same for all objects that
        this code holds."""
        if self.beginning[0] == self.rank:
            return self._beginning()[0].split(" on thread ")[0]
        number = self.depth - 2 - self.distance
        culprit, thing = self.things[number], self.things[number + 1]
        then = self.things[number + 2] if number + 2 < self.depth else None
        if type(culprit) in (types.FunctionType, functools._lru_cache_wrapper):
            return _full_name(culprit)
        words = _step(culprit, thing, then).removeprefix(" → ")
        return words if type(culprit).__module__ in (
            "builtins", "weakref", "threading") else f"{tidy(type(culprit).__module__)}.{words}"


def _parties_of(thing: Any) -> Iterator[tuple[int, tuple[int, str]]]:
    kind = type(thing)
    if kind is types.FunctionType:
        yield 0, of_code(thing.__code__, str(thing.__module__))
    elif kind in COROUTINES:
        prefix = COROUTINES[kind][1]
        frame = getattr(thing, f"{prefix}_frame")
        yield 0, of_code(getattr(thing, f"{prefix}_code"),
                         str(frame.f_globals.get("__name__", "")) if frame is not None else "")
    elif kind is _FINALIZER:
        yield 0, of_module(_module_of(thing.func))
    elif kind is functools._lru_cache_wrapper:
        yield 0, of_module(getattr(thing, "__module__", None))
    elif kind is types.FrameType:
        yield 3, of_code(thing.f_code, str(thing.f_globals.get("__name__", "")))
    elif kind in CALLS:
        yield 2, of_module(_module_of(_called(thing)))
    elif kind.__module__ != "builtins":
        yield 2, of_module(kind.__module__)


class Holder(NamedTuple):
    """A place that keeps an object. `words` is the path to the object as text. `pack` is the owner of the code at
    fault, and `place` is the place of that code (see Path.root)."""
    words: str
    pack: str
    place: str
    rank: int
    depth: int
    is_whole: bool # the path begins with a name


# ---- the search

class Search:
    """Searches outwards from several objects at once. All objects that are met are in one list, and all other notes are
    indices into that list. So the search itself adds no other references to objects."""

    def __init__(self, targets: list[Any], ignored: Iterable[int], deadline: Deadline,
                 nested: Optional[list[Any]] = None) -> None:
        self.deadline = deadline
        # id of a module's dictionary → the first name of the module
        self.modules = {id(dictionary(module)): name for name, module in modules()[::-1]}
        self.places = running(set(ignored))
        self.models = Models()
        self.things = list(targets)
        self.numbers = {id(thing): number for number, thing in enumerate(self.things)}
        # for each thing a dictionary: target → the next thing on the path to that target, or -1 if the thing is the
        # target itself
        self.ahead = [{self.numbers[id(thing)]: -1} for thing in self.things]
        self.paths: dict[int, list[Path]] = {number: [] for number in self.numbers.values()}
        self.ours = {*ignored, id(targets), id(self.things), id(self.numbers), id(self.places), id(self.models.modules),
                     id(nested)}
        self.nested = nested
        self.arrays: Optional[list[Any]] = None # the arrays in `nested`
        self.is_cut = False

    def path_to(self, target: int, number: int) -> list[Any]:
        found = []
        while number >= 0:
            found.append(self.things[number])
            number = self.ahead[number].get(target, -1)
        return found

    def run(self, is_enough: Any) -> None:
        """Searches until is_enough(paths to a target) is true for each target, or until time or DEPTH is used up."""
        level = sorted(self.paths)
        for _depth in range(DEPTH):
            for number in level:
                self._look_at_places(number)
            open_ = {target for target, paths in self.paths.items() if not is_enough(paths)}
            level = [number for number in level if not open_.isdisjoint(self.ahead[number])][:WIDE]
            following: dict[int, None] = {}
            for first in range(0, len(level), AT_ONCE):
                if self.deadline.is_over():
                    self.is_cut = True
                    return
                self._look_around(level[first:first + AT_ONCE], following)
            level = list(following)
            if not level:
                return

    def _add(self, target: int, things: list[Any], place: Optional[Place] = None) -> None:
        if len(self.paths[target]) < PATHS:
            self.paths[target].append(Path(things, self.modules, place))

    def _look_at_places(self, number: int) -> None:
        for place in self.places.get(id(self.things[number]), ()):
            for target in self.ahead[number]:
                self._add(target, self.path_to(target, number), place)

    def _look_around(self, level: list[Any], following: dict[Any, Any]) -> None:
        some = [self.things[number] for number in level]
        self.ours.add(id(some))
        around = gc.get_referrers(*some)
        self.ours.add(id(around))
        around += self._nested_around(some)
        level_ids = {id(thing): number for number, thing in zip(level, some)}
        for number in range(len(around)):
            self._meet(around, number, level_ids, following)
        self.ours -= {id(some), id(around)} # other objects may soon get the same addresses

    def _meet(self, around: list[Any], place: int, level_ids: dict[Any, Any], following: dict[Any, Any]) -> None:
        """Handles one object of `around`, at the index `place`. This object refers to some objects of the level. The
        level has the objects that the previous step reached; at first it has the targets."""
        holder = around[place]
        if id(holder) in self.ours or (type(holder) is types.FrameType and self._is_running(holder)):
            return
        if type(holder).__name__ in CONTEXT_NODES:
            self._meet_variables(holder, level_ids, following)
            return
        inside = {level_ids[id(thing)] for thing in contents(holder) if id(thing) in level_ids}
        is_root = id(holder) in self.modules or is_a(holder, type)
        for thing in sorted(inside):
            for target in list(self.ahead[thing]):
                if is_root:
                    self._add(target, [holder, *self.path_to(target, thing)])
                else:
                    self._go_on(holder, target, thing, following)

    def _meet_variables(self, node: Any, level_ids: dict[Any, Any], following: dict[Any, Any]) -> None:
        """Goes from a value in a context to its context variable, because the variable has a name and the context has
        none."""
        inside = gc.get_referents(node) # each value is followed by its variable
        for value, variable in zip(inside, inside[1:]):
            if type(variable) is contextvars.ContextVar and id(value) in level_ids:
                for target in list(self.ahead[level_ids[id(value)]]):
                    self._go_on(variable, target, level_ids[id(value)], following)

    def _go_on(self, holder: Any, target: int, thing: int, following: dict[Any, Any]) -> None:
        """Notes a holder on the path to a target. From a part of a model, goes on to the whole model at once, because
        the objects between them live no longer than the model."""
        module = self.models.of_dictionary(holder)
        if module is not None:
            self._go_on(module, target, thing, following)
            return
        number = self.numbers.get(id(holder))
        if number is None:
            number = self.numbers[id(holder)] = len(self.things)
            self.things.append(holder)
            self.ahead.append({})
        if target in self.ahead[number]:
            return
        self.ahead[number][target] = thing
        around = self.models.around(holder)
        for module in around:
            self._go_on(module, target, number, following)
        if not around:
            following[number] = None

    def _is_running(self, frame: types.FrameType) -> bool:
        """Whether to leave out this frame, because it is memstow's own, or because `places` has its variables already.
        (The collector knows the frames of running functions only before Python 3.11.)"""
        return is_ours(frame) or sys.version_info < (3, 11) and any(
            place.frame is frame for places in self.places.values() for place in places)

    def _nested_around(self, some: list[Any]) -> list[Any]:
        """The containers in `nested` that refer to these objects. `nested` has the containers that the collector does
        not track: dictionaries, tuples, and arrays whose elements are Python objects. Untracked dictionaries and tuples
        contain only untracked objects, such as bytes, arrays and numbers. Arrays may contain tracked objects, too.

        If `nested` is not known yet, it is made here, but only if some of these objects are untracked. If it is neither
        known nor made, the result is empty."""
        wanted = {id(thing) for thing in some if not gc.is_tracked(thing)}
        if self.nested is None and wanted:
            self.nested = untracked()
            self.ours.add(id(self.nested))
        if self.nested is None:
            return []
        if self.arrays is None:
            self.arrays = [one for one in self.nested if type(one) is _array_type()]
            self.ours.add(id(self.arrays))
        found = [one for one in self.nested if not wanted.isdisjoint(map(id, gc.get_referents(one)))] if wanted else []
        every = {id(thing) for thing in some}
        return found + [array for array in self.arrays if not every.isdisjoint(map(id, array.flat))]

    def unfinished(self, target: int) -> list[Path]:
        """The most useful of the paths that begin at an object without a name."""
        inner = {ahead.get(target) for ahead in self.ahead}
        found = [Path(self.path_to(target, number), self.modules) for number, ahead in enumerate(self.ahead)
                 if ahead.get(target, -1) >= 0 and number not in inner]
        found.sort(key=lambda path: (path.rank, -path.depth))
        return [path for path in found[:MOST] if path.rank == found[0].rank]


# CONTEXT_NODES: names of the types of objects inside a contextvars.Context. ELEMENTS: an array with more elements is
# not looked at
CONTEXT_NODES, ELEMENTS = ("hamt_bitmap_node", "hamt_collision_node"), 1_000_000


def _array_type() -> Any:
    return getattr(sys.modules.get("numpy"), "ndarray", None)


def _has_objects(thing: Any) -> bool:
    """Whether the thing is an array of numpy whose elements are Python objects. The collector does not know such
    arrays. An array of more than ELEMENTS elements does not count, because reading them would take too long."""
    return type(thing) is _array_type() and thing.dtype.char == "O" and thing.size <= ELEMENTS


def contents(thing: Any) -> list[Any]:
    """The objects that this object refers to."""
    return list(thing.flat) if _has_objects(thing) else gc.get_referents(thing)


def referents(objects: list[Any]) -> Iterator[list[Any]]:
    """The objects that these objects refer to, some at a time."""
    for first in range(0, len(objects), 1000):
        yield gc.get_referents(*objects[first:first + 1000])


def untracked(objects: Optional[list[Any]] = None, meet: Callable[[list[Any]], Any] = len) -> list[Any]:
    """The containers that the garbage collector does not track: dictionaries, tuples, and numpy arrays whose elements
    are Python objects. They are found by following references from `objects`, or from all tracked objects if `objects`
    is None. All objects that are reached by a reference are given to `meet`, some at a time."""
    objects = gc.get_objects() if objects is None else objects
    kinds = {tuple, dict, _array_type()}
    found: dict[int, Any] = {}
    arrays: list[Any] = [] # the collector knows none of them
    while objects:
        new: dict[int, Any] = {}
        for some in itertools.chain(referents(objects), map(contents, arrays)):
            meet(some)
            new.update({id(one): one for one in some if type(one) in kinds and not gc.is_tracked(one)
                        and (type(one) in (tuple, dict) or _has_objects(one))})
        objects = [one for number, one in new.items() if number not in found]
        arrays = list(filter(_has_objects, objects))
        found.update(new)
    return list(found.values())


def best_rank() -> int:
    """The rank of the holders that a search wants most: in ComfyUI the rank of node packs, elsewhere that of the
    program."""
    return PACK if any("/custom_nodes/" in str(dictionary(module).get("__file__")) for _name,
                       module in modules()) else APPLICATION


def find(targets: list[Any], ignored: Iterable[int] = (), deadline: Optional[Deadline] = None,
         all_of_them: bool = False, nested: Optional[list[Any]] = None) -> tuple[list[list[Holder]], bool]:
    """The holders of each target, the most useful first, and whether time ran out. Without `all_of_them`, the search
    for a target ends with the first path of the best rank. `nested`: the result of untracked(), if it is known."""
    best = best_rank()

    def is_enough(paths: list[Path]) -> bool:
        return len(paths) >= MOST if all_of_them else any(path.rank <= best for path in paths)

    search = Search(targets, {*ignored, id(sys._getframe())}, deadline or Deadline(), nested)
    search.run(is_enough)
    found = []
    for thing in targets:
        number = search.numbers[id(thing)]
        paths = search.paths[number] or search.unfinished(number)
        paths.sort(key=lambda path: (path.rank, path.depth))
        found.append([Holder(path.words(), path.pack, path.root(), path.rank, path.depth, path.is_whole)
                      for path in paths[:MOST]])
    return found, search.is_cut


def is_final(found: list[Holder]) -> bool:
    """Whether one of the holders has the best rank and a whole path, so that a longer search cannot find a better
    holder. A path is not whole if the search ended before it reached a name."""
    best = best_rank()
    return any(holder.is_whole and holder.rank <= best for holder in found)


class Known:
    """The holders that searches have found for one thing. `is_final` is true if a search came to its end, or if it
    found a holder that a longer search cannot improve on."""

    def __init__(self) -> None:
        self.holders: list[Holder] = []
        self.is_final = False

    def take(self, found: list[Holder], is_cut: bool) -> bool:
        """Takes the result of a search, unless the known result is better because this search was cut short. Returns
        whether the result was taken."""
        final = not is_cut or is_final(found)
        if self.holders and self.is_final and not final:
            return False
        self.holders, self.is_final = found, final
        return True

    def words(self) -> list[str]:
        return list(dict.fromkeys(holder.words for holder in self.holders))


def together(found: list[list[Holder]]) -> list[Holder]:
    """The holders of several objects of one owner, the most useful first."""
    return sorted((holder for some in found for holder in some), key=lambda holder: (holder.rank, holder.depth))


def held(found: list[Holder]) -> dict[str, Any]:
    """The members of a HELD line of the trace. The most useful holder comes first. `other_places` has the places of
    other holders that are as likely to be at fault as the first holder."""
    if not found:
        return {"holders": []}
    first, *others = dict.fromkeys((holder.pack[:NAME], holder.place[:NAME]) for number, holder in enumerate(found)
                                   if not number or holder.is_whole and holder.rank == found[0].rank)
    places = [{"pack": pack, "place": place} for pack, place in others]
    lengths = itertools.accumulate(len(json.dumps(place)) + 1 for place in places)
    some = [place for place, length in zip(places, lengths) if length <= PLACES]
    return {"pack": first[0], "place": first[1], **({"other_places": some} if some else {}),
            "holders": for_trace(holder.words for holder in found)}


def for_trace(found: Iterable[str]) -> list[str]:
    """These lines without duplicates, cut to the space of a HELD line of the trace."""
    lines: list[str] = []
    room = LINE
    for line in dict.fromkeys(text[:LONGEST] for text in found):
        room -= len(json.dumps(line)) + 1
        if len(lines) == MOST or room < 0:
            break
        lines.append(line)
    return lines
