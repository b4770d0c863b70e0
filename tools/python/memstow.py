"""memstow's registration ABI (include/memstow.h) for Python: assigns memory to owners, and sets what happens to it.

    import memstow

    model = memstow.owner("UNET", origin="wan.safetensors")
    with memstow.scope(model):            # memory that is allocated here is the model's
        weights = load()
    memstow.assign(model, other_tensors)  # and so is this older memory
    model.set_policy("stow")
    with memstow.run("prompt 1"):
        sample()
    memstow.trigger()                     # keeps, stows or frees what each owner has

It works in a process that `memstow run` started. In any other process every call does nothing, and the first call logs
once, through the logger "memstow", how to start the process under memstow. Only the standard library is needed; torch
is used if the program has imported it. Python 3.9 or later. A failed call raises memstow.Error, an OSError with the
errno and the library's message. docs/python.md is the guide, and docs/abi.md explains each call."""
from __future__ import annotations

import asyncio
import contextlib
import ctypes
import dataclasses
import errno
import functools
import gc
import importlib.util
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, Optional, Union

__all__ = ["ADVICE", "Decision", "Error", "Figures", "Owner", "Request", "Run", "Share", "Vbar", "active", "answer",
           "assign", "carry", "decide", "decisions", "drop_pools", "figures", "finish", "follow", "follow_tasks",
           "full_cleanup", "held", "loading", "look", "next_request", "note_vbars", "on_look", "outside_pools", "owner",
           "peak", "release", "release_range", "restore", "run", "scope", "shares", "snapshot", "stow", "trace",
           "trigger", "vbars", "version"]

ABI_MAJOR = 1
KINDS = {"model": 1, "node": 2, "run": 3, "custom": 4, "state": 5}
POLICIES = {None: 0, "keep": 1, "stow": 2, "free": 3}
OUTCOMES = {"ok": 0, "failed": 1, "cancelled": 2, "out-of-memory": 3}
REASONS = {"run_ended": 1, "request": 2, "pressure": 3, "idle": 4}
ASKS = {1: "trigger", 2: "stow", 3: "restore", 4: "release", 7: "collect", 8: "holders"}
WHYS = {1: "nothing_said", 2: "policy", 3: "in_use", 4: "pressure", 5: "empty", 6: "retired", 7: "not_needed",
        8: "cannot", 9: "recent"}
KIND_NAMES = {number: name for name, number in KINDS.items()}
POLICY_NAMES = {number: name for name, number in POLICIES.items()}
REASON_NAMES = {number: name for name, number in REASONS.items()}

ADVICE = ("this process was not started under memstow, so owners and policies do nothing here; start it as: "
          "memstow run -- python …")
log = logging.getLogger("memstow")


class Error(OSError):
    """A failed call: errno and the library's message."""


# ---- the structures of memstow.h

UNKNOWN = 2**64 - 1
SCOPES, DEVICES = 62, 8


class _Figures(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("policy", ctypes.c_uint32),
                ("priority", ctypes.c_int32), ("retired", ctypes.c_uint32), ("adopted_by", ctypes.c_uint32),
                *((name, ctypes.c_uint64) for name in (
                    "live_bytes", "live_blocks", "allocated_bytes", "host_bytes", "mapped_bytes", "cuda_bytes",
                    "resident_bytes", "stowed_bytes", "movable_bytes", "device_stowed_bytes")),
                ("on_device_bytes", ctypes.c_uint64 * DEVICES)]


class _Share(ctypes.Structure):
    _fields_ = [("model", ctypes.c_uint32), ("node", ctypes.c_uint32), ("run", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32), ("live_bytes", ctypes.c_uint64), ("live_blocks", ctypes.c_uint64),
                ("cuda_bytes", ctypes.c_uint64)]


class _Scopes(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("count", ctypes.c_uint32), ("owners", ctypes.c_uint32 * SCOPES)]


class _Decision(ctypes.Structure):
    _fields_ = [("owner", ctypes.c_uint32), ("policy", ctypes.c_uint32), ("action", ctypes.c_uint32),
                ("why", ctypes.c_uint32), ("live_bytes", ctypes.c_uint64), ("device_bytes", ctypes.c_uint64)]


class _Request(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("kind", ctypes.c_uint32), ("ticket", ctypes.c_uint64),
                ("owner", ctypes.c_uint32), ("reason", ctypes.c_uint32), ("text", ctypes.c_char * 256),
                ("needed", ctypes.c_uint64)]


_I32, _I64, _U32, _U64, _TEXT = ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_char_p
_ANY = ctypes.c_void_p
# These functions take a few nanoseconds, so they are called with the interpreter's lock held. Releasing the lock would
# cost more than the call, and would let other threads in.
_QUICK = {
    "abi_version": (_U32,), "is_tracking": (_I32,), "error": (_TEXT,),
    "scope_enter": (_I32, _U32), "scope_leave": (_I32, _U32), "scope_swap": (_I32, _ANY, _ANY),
    "scope_save": (_I32, _ANY), "load_begin": (_I32, _U32), "load_end": (_I32,),
}
_CALLS = {
    "owner_open": (_I64, _U32, _TEXT, _TEXT, _U64, _U64), "owner_adopt": (_I32, _U32, _U32),
    "owner_retire": (_I32, _U32),
    "owner_policy": (_I32, _U32, _U32, _I32), "owner_idle": (_I32, _U32, _U32),
    "owner_discard": (_I32, _U32, _U32), "owner_figures": (_I32, _U32, _ANY),
    "shares": (_I64, _ANY, _U32, _U32),
    "assign": (_I32, _U32, _ANY, _U64), "release_range": (_I32, _ANY, _U64),
    "run_begin": (_I64, _TEXT), "run_end": (_I32, _U32, _U32),
    "stow": (_I64, _U32), "restore": (_I64, _U32), "release": (_I64, _U32),
    "trigger_begin": (_I64, _U32, _TEXT, _U64, _ANY, _U32, _U32), "trigger_end": (_I64,),
    "trigger": (_I64, _U32, _TEXT),
    "trace": (_I32, _TEXT), "decisions": (_I64, _ANY, _U64, _U64, _ANY),
    "request_next": (_I32, _ANY, _U32), "request_of": (_I32, _ANY, _U32, _U32),
    "blocks": (_I64, _ANY, _U32, _U32, _ANY, _U32),
    "request_done": (_I32, _U64, _I64, _TEXT), "snapshot": (_I32, _TEXT), "peak": (_I64, _U32),
    # for memstow_shutdown.py
    "shutdown_files": (_I32, _TEXT, _TEXT), "shutdown_process": (_I32, _I32, _TEXT, _U32),
    "shutdown_launched": (_I32, _I32, _TEXT, _U32, _U64), "shutdown_forget": (_I32, _I32),
    "shutdown_begin": (_I32, _TEXT, _U32, _I32), "shutdown_on_signal": (_I32, _I32, _U32, _I32),
    "shutdown_stage": (_I32, _U32), "shutdown_left": (_I64, _ANY, _U32),
    "shutdown_run": (_I64, _U32), "shutdown_step": (_I32, _TEXT, _TEXT, _I64),
    "shutdown_processes": (_I64, _U32), "shutdown_threads": (_I64, _U32), "shutdown_end": (_I64, _U32),
}


def _no_such_call(*_arguments: Any) -> int:
    return -errno.ENOSYS


class _Library:
    """The functions of the library in this process, by name. Functions that it does not have return -ENOSYS."""

    def __init__(self) -> None:
        self.present = False
        for loader, calls in ((ctypes.PyDLL, _QUICK), (ctypes.CDLL, _CALLS)):
            try:
                library = loader(None)
            except (OSError, TypeError): # TypeError: on Windows the program itself cannot be opened
                library = None
            for name, (result, *arguments) in calls.items():
                function = getattr(library, f"memstow_{name}", None)
                if function is None:
                    function = _no_such_call
                else:
                    function.restype, function.argtypes = result, arguments
                setattr(self, name, function)
        version = self.abi_version()
        self.present = version >> 16 == ABI_MAJOR if version > 0 else False

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Callable[..., Any]: ...


_library = _Library()
_advised = False


def version() -> Optional[tuple[int, int]]:
    """Major and minor version of the library's interface; None without the library."""
    number = _library.abi_version()
    return (number >> 16, number & 0xFFFF) if number > 0 else None


def active() -> bool:
    """Whether memstow keeps a ledger of this process. Logs nothing."""
    return _library.present and _library.is_tracking() == 1


def advise() -> None:
    """Logs once that memstow keeps no ledger of this process."""
    global _advised
    if not _advised:
        _advised = True
        log.warning(ADVICE)


def _ready() -> bool:
    """Whether memstow keeps a ledger of this process. If not, logs the advice once."""
    if active():
        return True
    advise()
    return False


def _check(result: int, what: str) -> int:
    if result >= 0:
        return result
    text = "" if result == -errno.ENOSYS else (_library.error() or b"").decode("utf-8", "replace")
    raise Error(-result, f"{what}: {text or os.strerror(-result)}")


def _encoded(text: Any) -> bytes:
    return str(text).encode("utf-8", "replace").replace(b"\0", b" ")


# ---- owners and their figures

@dataclasses.dataclass(frozen=True)
class Figures:
    """The memory of an owner in bytes. resident_bytes is the part in physical memory, None if it is not known.
    on_device_bytes is the part of cuda_bytes that is on each device now, for the devices 0 to 7; a library before ABI
    1.11 leaves it 0."""
    kind: str = "custom"
    policy: Optional[str] = None
    priority: int = 0
    retired: bool = False
    adopted_by: int = 0
    live_bytes: int = 0
    live_blocks: int = 0
    allocated_bytes: int = 0
    host_bytes: int = 0
    mapped_bytes: int = 0
    cuda_bytes: int = 0
    resident_bytes: Optional[int] = None
    stowed_bytes: int = 0
    movable_bytes: int = 0
    device_stowed_bytes: int = 0
    on_device_bytes: tuple[int, ...] = (0,) * DEVICES


class Owner:
    """An identity that memory belongs to. id is 0 in a process that memstow does not track."""
    __slots__ = ("id", "kind", "name", "origin")

    def __init__(self, number: int, kind: str, name: str, origin: str) -> None:
        self.id, self.kind, self.name, self.origin = number, kind, name, origin

    def __repr__(self) -> str:
        return f"<memstow {self.kind} {self.id} {self.name!r}>"

    def adopt(self, provisional: "OwnerLike") -> None:
        """Gives all memory of the provisional owner, present and future, to this owner. The provisional owner is
        retired."""
        if _ready():
            _check(_library.owner_adopt(self.id, _number(provisional)), "adopt")
            if _pools is not None:
                _pools.adopt(self.id, _number(provisional))

    def retire(self) -> None:
        """Notes that the program's object is gone. The owner's keys can be used for another owner. Memory that is left
        stays with this owner."""
        if _ready():
            _check(_library.owner_retire(self.id), "retire")
            drop_pools(self)

    def set_policy(self, policy: Optional[str], priority: int = 0) -> None:
        """Sets what a trigger does with the owner: "keep", "stow", "free", or None, which counts as keep."""
        number = _choice(POLICIES, policy, "policy")
        if _ready():
            _check(_library.owner_policy(self.id, number, priority), "policy")

    def set_idle(self, idle: bool) -> None:
        """True is a promise: from now until the next call with False, nobody reads or writes the owner's memory."""
        if _ready():
            _check(_library.owner_idle(self.id, int(bool(idle))), "idle")

    def set_discard(self, discard: bool) -> None:
        """With True, declares that the content of the owner's device memory is dropped when the memory leaves the
        device. This is for caches that can be computed again, never for weights. After a restore the content is
        undefined. Host memory keeps its content."""
        if _ready():
            _check(_library.owner_discard(self.id, int(bool(discard))), "discard")

    def figures(self) -> Figures:
        return figures(self)

    def scope(self) -> "scope":
        return scope(self)

    def loading(self) -> "loading":
        return loading(self)

    def assign(self, thing: Any) -> int:
        return assign(self, thing)

    def stow(self) -> int:
        return stow(self)

    def restore(self) -> int:
        return restore(self)

    def release(self) -> int:
        return release(self)


OwnerLike = Union[Owner, int]


def _number(owner: OwnerLike) -> int:
    return owner if isinstance(owner, int) else owner.id


def _choice(table: Mapping[Any, int], word: Any, what: str) -> int:
    if word not in table:
        raise ValueError(f"{what} must be one of {', '.join(map(str, table))}; not {word!r}")
    return table[word]


def owner(name: str, kind: str = "model", origin: str = "", keys: tuple[int, int] = (0, 0),
          policy: Optional[str] = None, priority: int = 0) -> Owner:
    """Finds or opens the owner of this kind (model, node or custom) with these two keys. The program chooses the keys,
    for example ids of its objects. If an owner that is not retired has these keys, the function returns it; else it
    opens a new owner. The keys (0, 0) always open a new owner."""
    number = _choice(KINDS, kind, "kind")
    _choice(POLICIES, policy, "policy")
    if not _ready():
        return Owner(0, kind, name, origin)
    opened = _check(_library.owner_open(number, _encoded(name), _encoded(origin), keys[0] & UNKNOWN, keys[1] & UNKNOWN),
                    "owner")
    made = Owner(opened, kind, name, origin)
    _kinds[opened] = kind
    _labels[opened] = f"{name} ({origin})"
    if policy is not None:
        made.set_policy(policy, priority)
    return made


def figures(owner: OwnerLike) -> Figures:
    """The owner's memory now. The call sums the counters of all threads, which takes milliseconds in a large
    process."""
    if not _ready():
        return Figures()
    raw = _Figures(size=ctypes.sizeof(_Figures))
    _check(_library.owner_figures(_number(owner), ctypes.byref(raw)), "figures")
    values = {field.name: getattr(raw, field.name) for field in dataclasses.fields(Figures)}
    values.update(kind=KIND_NAMES.get(raw.kind, "custom"), policy=POLICY_NAMES.get(raw.policy),
                  retired=bool(raw.retired), on_device_bytes=tuple(raw.on_device_bytes),
                  resident_bytes=None if raw.resident_bytes == UNKNOWN else raw.resident_bytes)
    return Figures(**values)


@dataclasses.dataclass(frozen=True)
class Share:
    """The live memory of one model or custom owner in one node and one run. `model`, `node` and `run` are ids of
    owners, or 0 if there is none."""
    model: int
    node: int
    run: int
    live_bytes: int
    live_blocks: int
    cuda_bytes: int


def shares() -> list[Share]:
    """All live memory with an owner, divided by model, node and run. Each byte is in one share; several shares may have
    the same three ids. The call takes as long as figures()."""
    if not _ready():
        return []
    room = 256
    while True:
        raw = (_Share * room)()
        count = _check(_library.shares(raw, room, ctypes.sizeof(_Share)), "shares")
        if count <= room:
            return [Share(s.model, s.node, s.run, s.live_bytes, s.live_blocks, s.cuda_bytes) for s in raw[:count]]
        room = 2 * count


# ---- scopes: whose memory this thread allocates

class scope(contextlib.ContextDecorator):
    """`with scope(owner):` gives allocations of this thread inside the block to the owner. Scopes of one thread nest;
    leaving a scope that is not the innermost of its kind raises Error. A coroutine that awaits inside the block must be
    wrapped with follow()."""
    __slots__ = ("_number",)

    def __init__(self, owner: OwnerLike) -> None:
        self._number = _number(owner) if _ready() else 0

    def __enter__(self) -> "scope":
        if self._number:
            if _wants_workspaces:
                _before_scope()
            _check(_library.scope_enter(self._number), "scope")
            if _wants_pools:
                _follow_pool()
        return self

    def __exit__(self, *_exception: Any) -> None:
        if self._number:
            _check(_library.scope_leave(self._number), "scope")
            if _wants_pools:
                _follow_pool()


class loading(scope):
    """`with loading(owner):` is a scope in which the thread loads the owner: device memory that is allocated in it is
    meant to stay long, and memstow can move it. From an owner's first loading() on, device memory that is allocated in
    other scopes of the owner counts as short-lived: memstow leaves it to the driver, and does not move it."""
    __slots__ = ()

    def __enter__(self) -> "loading":
        super().__enter__()
        error = _library.load_begin(self._number) if self._number else 0
        if error and error != -errno.ENOSYS: # a library before 1.10 does not have load_begin
            super().__exit__()
            _check(error, "loading")
        return self

    def __exit__(self, *exception: Any) -> None:
        if self._number:
            _library.load_end()
        super().__exit__(*exception)


def _scopes_now(owner: Optional[OwnerLike] = None) -> _Scopes:
    """The open scopes of this thread, and inside them a scope of the owner if one is given."""
    saved = _Scopes(size=ctypes.sizeof(_Scopes))
    _check(_library.scope_save(ctypes.byref(saved)), "scopes")
    number = 0 if owner is None else _number(owner)
    if number:
        if saved.count >= SCOPES:
            raise Error(errno.ENOSPC, "too many scopes are open")
        saved.owners[saved.count] = number
        saved.count += 1
    return saved


class _Swapped:
    """A context manager: in its block the thread has the scopes in `scopes`, and no others. Scopes that are open at the
    end of the block are open again when the same object is entered the next time."""
    __slots__ = ("scopes", "outside")

    def __init__(self, scopes: _Scopes) -> None:
        self.scopes = scopes
        self.outside = _Scopes(size=ctypes.sizeof(_Scopes))

    def __enter__(self) -> None:
        if _wants_workspaces:
            _before_scope()
        _check(_library.scope_swap(ctypes.byref(self.scopes), ctypes.byref(self.outside)), "scopes")
        if _wants_pools:
            _follow_pool()

    def __exit__(self, *_exception: Any) -> None:
        _library.scope_swap(ctypes.byref(self.outside), ctypes.byref(self.scopes))
        if _wants_pools:
            _follow_pool()


class _Followed(Coroutine[Any, Any, Any]):
    """A coroutine whose scopes are open whenever it runs, and only then."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], scopes: _Scopes) -> None:
        self._coroutine, self._inside = coroutine, _Swapped(scopes)

    def send(self, value: Any) -> Any:
        with self._inside:
            return self._coroutine.send(value)

    def throw(self, *exception: Any) -> Any:
        with self._inside:
            return self._coroutine.throw(*exception)

    def close(self) -> None:
        with self._inside:
            self._coroutine.close()

    def __await__(self) -> "_Followed":
        return self

    def __iter__(self) -> "_Followed":
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def __getattr__(self, name: str) -> Any: # cr_frame, cr_code, __qualname__…, for code that prints tasks
        return getattr(self._coroutine, name)


def follow(coroutine: Coroutine[Any, Any, Any], owner: Optional[OwnerLike] = None) -> Coroutine[Any, Any, Any]:
    """Wraps the coroutine, so that it runs in the scopes that are open when follow() is called, and in a scope of the
    owner. These scopes are open whenever the coroutine runs, also after an await, and closed while other coroutines
    run. Scopes that the coroutine opens itself are handled in the same way."""
    if not _ready():
        return coroutine
    return _Followed(coroutine, _scopes_now(owner))


def follow_tasks(loop: Optional[asyncio.AbstractEventLoop] = None) -> None:
    """Makes each new task of the event loop (default: the running one) keep the scopes that it was created in, as it
    keeps its context variables."""
    if not _ready():
        return
    loop = loop or asyncio.get_running_loop()
    before = loop.get_task_factory()
    if getattr(before, "_memstow", False):
        return

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> Any:
        if isinstance(coroutine, Coroutine) and not isinstance(coroutine, _Followed):
            coroutine = _Followed(coroutine, _scopes_now())
        if before is not None:
            return before(loop, coroutine, **options)
        return asyncio.Task(coroutine, loop=loop, **options)

    factory._memstow = True # type: ignore[attr-defined] # a mark on a function
    loop.set_task_factory(factory)


def carry(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function, so that it runs in the scopes that are open when carry() is called, even on another thread."""
    if not _ready():
        return function
    scopes = _scopes_now()

    @functools.wraps(function)
    def carried(*arguments: Any, **options: Any) -> Any:
        with _Swapped(_Scopes.from_buffer_copy(scopes)):
            return function(*arguments, **options)
    return carried


# ---- pools of PyTorch's: without them PyTorch's allocator puts allocations of several models into one segment


def _asked_for_moves() -> bool:
    """Whether MEMSTOW_CUDA_MOVES asks for moves of device memory: it is a size other than 0."""
    size = re.fullmatch("([0-9]+)[KMGT]?", os.environ.get("MEMSTOW_CUDA_MOVES", ""))
    return size is not None and int(size[1]) > 0


def _asked_for_pools() -> bool:
    """Whether the environment asks for pools: with MEMSTOW_CUDA_POOLS=1, or with MEMSTOW_CUDA_MOVES if
    MEMSTOW_CUDA_POOLS is empty or not set."""
    asked = os.environ.get("MEMSTOW_CUDA_POOLS")
    return asked == "1" if asked else _asked_for_moves()


_wants_pools = _asked_for_pools()
_wants_workspaces = _wants_pools or _asked_for_moves()
_pools: Any = None          # memstow_pools.Pools
_made: dict[str, Any] = {}  # the process's only Pools and Looks: if several threads make one, all use the first
_kinds: dict[int, str] = {} # kinds of owners, by id
_labels: dict[int, str] = {} # name and origin of owners, by which memstow leaks tells them apart


def _beside(name: str) -> ModuleType:
    """A module beside this one. Its folder need not be in sys.path."""
    if name not in sys.modules:
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec and spec.loader # not None, because the path ends in .py
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return sys.modules.setdefault(name, module) # another thread may have been faster
    return sys.modules[name]


def _begin_pools() -> bool:
    """Makes the pools, if PyTorch and CUDA are in use. Returns whether there are pools now. PyTorch may be imported
    later, and CUDA may begin even later, so every scope calls this again."""
    global _pools, _wants_pools
    torch = sys.modules.get("torch")
    if _pools is None and torch is not None:
        module = _beside("memstow_pools")
        can = module.possible(torch)
        if can is False:
            _wants_pools = False
        elif can:
            _pools = _made.setdefault("pools", module.Pools(torch))
    return _pools is not None


def _before_scope() -> None:
    """Makes cuBLAS's workspace for the thread and its stream, if the thread is in no model's scope. Without this call,
    the first matrix product in a scope would make the workspace, in the model's memory."""
    global _wants_workspaces
    torch = sys.modules.get("torch")
    try:
        if torch is not None and not _innermost_model():
            _beside("memstow_pools").make_workspace(torch)
    except Exception as error:
        _wants_workspaces = False
        log.warning("no workspaces of cuBLAS's before scopes any more: %s: %s", type(error).__name__, error)


def _innermost_model() -> int:
    """The id of the innermost model or custom owner in whose scope this thread is; 0: there is none."""
    saved = _scopes_now()
    number: int
    for number in reversed(saved.owners[:saved.count]):
        if number not in _kinds:
            _kinds[number] = figures(number).kind
        if _kinds[number] in ("model", "custom"):
            return number
    return 0


def _follow_pool() -> None:
    try:
        if _begin_pools():
            _pools.follow(_innermost_model())
    except Exception as error:
        _no_more_pools(error)


def _no_more_pools(error: Exception) -> None:
    """Gives up pools, because PyTorch refused one. The program's scope gets no error. From now on no thread enters a
    pool. Other threads leave their pools at the end of their scopes. They must, because PyTorch gives back no cached
    memory while any thread is in a pool."""
    global _wants_pools
    if _pools is None:
        _wants_pools = False
    else:
        was_over, _pools.is_over = _pools.is_over, True
        with contextlib.suppress(Exception):
            _pools.follow(0)
        if was_over:
            return
    log.warning("no pools of PyTorch's for models any more: %s: %s", type(error).__name__, error)


def drop_pools(owner: Optional[OwnerLike] = None) -> None:
    """Lets PyTorch give back memory that is cached for a model, or for all models. Call it before
    torch.cuda.empty_cache(). Tensors are not affected. If models have no pools of their own, it does nothing."""
    if _pools is not None:
        try:
            _pools.drop(None if owner is None else _number(owner))
        except Exception as error:
            _no_more_pools(error)


@contextlib.contextmanager
def outside_pools() -> Iterator[None]:
    """Keeps this thread out of models' pools in the block. PyTorch gives back no cached memory while any thread is in a
    pool. So inside a scope, write `with outside_pools(): torch.cuda.empty_cache()`. Scopes stay as they are, and other
    threads stay in their pools."""
    pools = _pools
    if pools is None:
        yield
        return
    pools.stay_outside(1)
    _follow_pool()
    try:
        yield
    finally:
        pools.stay_outside(-1)
        _follow_pool()


# ---- assigning memory that exists already

class _Buffer(ctypes.Structure): # CPython's Py_buffer
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.py_object), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("rest", ctypes.c_void_p * 5)]


def _buffer_range(thing: Any) -> tuple[int, int]:
    """Address and length of the memory that an object shows by the buffer protocol."""
    if type(thing) is bytes: # its block begins at the object itself
        return id(thing), sys.getsizeof(thing)
    view = _Buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(thing), ctypes.byref(view), 0)
    try:
        return view.buf or 0, view.len
    finally:
        ctypes.pythonapi.PyBuffer_Release(ctypes.byref(view))


def _tensor_ranges(tensor: Any) -> Iterator[tuple[int, int]]:
    """The memory of a tensor on the CPU or on a CUDA device. If the tensor consists of other tensors, as a quantised
    tensor does, the memory of these tensors."""
    if hasattr(tensor, "__tensor_flatten__"):
        try:
            for name in tensor.__tensor_flatten__()[0]:
                yield from _tensor_ranges(getattr(tensor, name))
            return
        except (AttributeError, NotImplementedError, TypeError):
            pass
    if tensor.device.type not in ("cpu", "cuda") or tensor.layout is not sys.modules["torch"].strided:
        return
    try:
        storage = tensor.untyped_storage()
        address, length = storage.data_ptr(), storage.nbytes()
    except (NotImplementedError, RuntimeError): # no storage of its own
        return
    if address and length:
        yield address, length


def _module_ranges(module: Any) -> Iterator[tuple[int, int]]:
    for tensor in (*module.parameters(), *module.buffers()):
        yield from _tensor_ranges(tensor)


def _inner_model(thing: Any, torch: Any) -> Any:
    """The torch module inside a ModelPatcher of ComfyUI, or inside a CLIP or VAE that has a ModelPatcher."""
    for _depth in range(3):
        if torch is None or thing is None or isinstance(thing, torch.nn.Module):
            break
        thing = getattr(thing, "patcher", None) or getattr(thing, "control_model_wrapped", None) or \
            getattr(thing, "model", None)
    return thing


def ranges(thing: Any) -> Iterator[tuple[int, int]]:
    """Addresses and lengths of the memory of a thing. The thing is a tensor, a torch module, a ModelPatcher of ComfyUI,
    an object with the buffer protocol, an (address, length) pair, or a list, tuple, set or mapping of such things. A
    range that several parts of the thing share may come more than once."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(thing, torch.Tensor):
        yield from _tensor_ranges(thing)
    elif torch is not None and isinstance(thing, torch.nn.Module):
        yield from _module_ranges(thing)
    elif isinstance(thing, tuple) and len(thing) == 2 and all(type(part) is int for part in thing):
        yield thing
    elif isinstance(thing, Mapping):
        for part in thing.values():
            yield from ranges(part)
    elif isinstance(thing, (list, tuple, set, frozenset)):
        for part in thing:
            yield from ranges(part)
    elif torch is not None and isinstance(inner := _inner_model(thing, torch), torch.nn.Module):
        yield from _module_ranges(inner)
        for kept in list((getattr(thing, "backup", None) or {}).values()): # weights without the LoRA
            weight = getattr(kept, "weight", kept)
            if isinstance(weight, torch.Tensor):
                yield from _tensor_ranges(weight)
    else:
        try:
            yield _buffer_range(thing)
        except (TypeError, BufferError) as error:
            raise TypeError(f"memstow cannot tell what memory a {type(thing).__name__} has") from error


def assign(owner: OwnerLike, thing: Any) -> int:
    """Assigns the memory of the thing (see ranges) to the model or custom owner; the node and the run of the memory
    stay the same. Returns the number of bytes. Parts that memstow does not track are left out; if no part is tracked,
    it raises Error. If the thing is a VBAR of comfy-aimdo, or refers to VBARs, the VBARs are noted as the owner's;
    their bytes do not count in the result."""
    if not _ready():
        return 0
    number, done, failed = _number(owner), 0, 0
    vbars_of_it = _assign_vbars(number, thing)
    if vbars_of_it and vbars_of_it[0] is thing:
        return 0
    for address, length in sorted(set(ranges(thing))):
        result = _library.assign(number, address, length)
        if result in (-errno.ENXIO, -errno.EFAULT):
            failed = result
        else:
            _check(result, "assign")
            done += length
    if failed and not done:
        _check(failed, "assign")
    return done


# ---- what comfy-aimdo manages

@dataclasses.dataclass(frozen=True)
class Vbar:
    """A range of device addresses where comfy-aimdo keeps a model's weights, and how much of it is resident, in
    bytes."""
    owner: int
    device: int
    address: int
    size: int
    resident: int
    pinned: int


_vbar_watch: Any = None # memstow_vbars.Watch


def _watch_vbars() -> Any:
    """The watch over comfy-aimdo's VBARs, which begins with the first call. None if the program has not imported
    comfy-aimdo."""
    global _vbar_watch
    module = sys.modules.get("comfy_aimdo.model_vbar")
    if _vbar_watch is None and module is not None and hasattr(module, "ModelVBAR"):
        _vbar_watch = _beside("memstow_vbars").Watch(module, _model_now)
    return _vbar_watch


def _model_now() -> int:
    try:
        return _innermost_model() if active() else 0
    except Error:
        return 0


def _assign_vbars(number: int, thing: Any) -> list[Any]:
    watch = _watch_vbars()
    found: list[Any] = watch.inside(thing) if watch is not None else []
    for vbar in found:
        watch.owners[vbar] = number
    return found


def vbars() -> list[Vbar]:
    """The VBARs of comfy-aimdo, with the figures that comfy-aimdo reports. They are device memory that memstow neither
    counts nor moves. From the first call on, a new VBAR belongs to the model in whose scope it is made. For other
    VBARs, call assign(owner, vbar)."""
    watch = _watch_vbars() if _ready() else None
    return [Vbar(*figures) for figures in watch.look()] if watch is not None else []


MOST_VBARS = 24  # the most VBARS that a line of the trace names


def note_vbars() -> list[Vbar]:
    """Calls vbars(), and writes the result to the trace. `memstow report` and `memstow owners` show the VBARs as they
    were at the latest call of this function."""
    found = vbars()
    if _vbar_watch is not None:
        largest = sorted(found, key=lambda vbar: -vbar.resident)[:MOST_VBARS]
        trace({"kind": "VBARS", "by": "python", "omitted": len(found) - len(largest), "vbars": [
            {"owner": v.owner, "device": v.device, "address": v.address, "bytes": v.size, "resident_bytes": v.resident,
             "pinned_bytes": v.pinned} for v in largest]})
    return found


def release_range(thing: Any) -> int:
    """Takes the memory of the thing from the owner to which assign() gave it. Returns the number of bytes."""
    if not _ready():
        return 0
    return sum(length for address, length in sorted(set(ranges(thing)))
               if _library.release_range(address, length) == 0)


# ---- runs, their outcomes, and garbage collections

def outcome_of(exception: Optional[BaseException]) -> str:
    """The name of the outcome of a run that ended with this exception. None: the run ended without an exception."""
    if exception is None:
        return "ok"
    if isinstance(exception, (asyncio.CancelledError, KeyboardInterrupt)):
        return "cancelled"
    if isinstance(exception, MemoryError) or "OutOfMemory" in type(exception).__name__:
        return "out-of-memory"
    return "failed"


_runs_ended = 0
_runs_collected = -1  # _runs_ended at the latest full garbage collection; -1: collections are not watched yet


def _collected(phase: str, info: Mapping[str, int]) -> None:
    """Notes in the trace that all garbage was collected. Objects that became garbage after the last such note may still
    be there, but are no leak. So `memstow leaks` judges runs only up to that note. The function writes at most one note
    a run, and takes no lock, because a collection may happen anywhere."""
    global _runs_collected
    if phase == "stop" and info.get("generation") == 2 and _runs_collected != _runs_ended:
        _runs_collected = _runs_ended
        _library.trace(b'{"kind":"COLLECTED","by":"python"}')


def _look_out_for_collections() -> None:
    global _runs_collected
    if _runs_collected < 0 and gc.isenabled() and active():
        _collected("stop", {"generation": 2}) # the first note; later collections write the next notes
        gc.callbacks.append(_collected)


class Run:
    """A run. Allocations of all threads belong to it while it is on. As a context manager it takes its outcome from the
    way the block ends."""
    __slots__ = ("name", "id", "outcome")

    def __init__(self, name: str) -> None:
        self.name, self.id = name, 0
        self.outcome: Optional[str] = None

    def begin(self) -> "Run":
        if _ready():
            _look_out_for_collections()
            looks = _begin_looks()
            self.id = _check(_library.run_begin(_encoded(self.name)), "run")
            if looks is not None:
                looks.run_begins()
        return self

    def end(self, outcome: str = "ok") -> None:
        number = _choice(OUTCOMES, outcome, "outcome")
        self.outcome = outcome
        if self.id:
            global _runs_ended
            _runs_ended += 1
            try:
                _check(_library.run_end(self.id, number), "run")
            finally:
                if _looks is not None:
                    _looks.run_ends()

    def __enter__(self) -> "Run":
        return self.begin()

    def __exit__(self, _kind: Any, exception: Optional[BaseException], _trace: Any) -> None:
        self.end(outcome_of(exception))


def run(name: str = "run") -> Run:
    """`with run("prompt 7"):` begins a run. Raises Error (EBUSY) while another run is on."""
    return Run(name)


def peak(anew: bool = False) -> int:
    """The peak of live bytes since the last call with anew=True. Such a call begins a new period. Without memstow the
    result is 0."""
    return _check(_library.peak(1 if anew else 0), "peak") if _ready() else 0


# ---- moving memory out and back

def stow(owner: OwnerLike) -> int:
    """Moves the owner's memory out to files. Addresses stay valid, and use brings the memory back. Returns the number
    of bytes moved."""
    return _check(_library.stow(_number(owner)), "stow") if _ready() else 0


def restore(owner: OwnerLike) -> int:
    """Brings all of the owner's memory back into memory that no file backs. Returns the number of bytes."""
    return _check(_library.restore(_number(owner)), "restore") if _ready() else 0


def release(owner: OwnerLike) -> int:
    """Gives free memory of the owner back to the system; nothing is lost. Returns the number of bytes."""
    drop_pools(owner)
    return _check(_library.release(_number(owner)), "release") if _ready() else 0


# ---- triggers and the trace

@dataclasses.dataclass(frozen=True)
class Decision:
    """A decision about an owner: the policy that applies, what is done now, and why."""
    owner: int
    policy: str
    action: str
    why: str
    live_bytes: int
    device_bytes: int = 0


MOST_DECISIONS = 4096


def decide(reason: str = "request", text: str = "", needed: int = 0) -> list[Decision]:
    """Begins a trigger, and returns the decisions in order. The program then drops what is to be freed, and calls
    finish(). Raises Error (EBUSY) while another trigger has not ended."""
    number = _choice(REASONS, reason, "reason")
    if not _ready():
        return []
    raw = (_Decision * MOST_DECISIONS)()
    count = _check(_library.trigger_begin(number, _encoded(text), needed, raw, MOST_DECISIONS,
                                          ctypes.sizeof(_Decision)), "trigger")
    return [Decision(d.owner, POLICY_NAMES.get(d.policy) or "keep", POLICY_NAMES.get(d.action) or "keep",
                     WHYS.get(d.why, str(d.why)), d.live_bytes, d.device_bytes)
            for d in raw[:min(count, MOST_DECISIONS)]]


def finish() -> int:
    """Ends the trigger that decide() began: stows, and gives back free memory. Returns the number of bytes given
    back."""
    drop_pools()
    return _check(_library.trigger_end(), "trigger") if _ready() else 0


def trigger(reason: str = "request", text: str = "") -> int:
    """decide() and finish() in one call, for a program that has nothing to drop. Returns the number of bytes given
    back."""
    number = _choice(REASONS, reason, "reason")
    drop_pools()
    return _check(_library.trigger(number, _encoded(text)), "trigger") if _ready() else 0


def trace(line: Mapping[str, Any]) -> None:
    """Adds a line, a JSON object of at most 4000 bytes, to the trace of decisions."""
    if _ready():
        _check(_library.trace(json.dumps(line, separators=(",", ":")).encode()), "trace")


def referrers() -> ModuleType:
    """The module memstow_referrers, which finds the holders of an object."""
    return _beside("memstow_referrers")


def held(owner: OwnerLike, *things: Any, seconds: float = 1.0) -> list[str]:
    """Finds the holders of these things, which belong to the owner and should be gone. Returns at most eight places in
    the source; []: none was found. The places are also noted in the trace, for memstow leaks. Variables of the calling
    function do not count. The search takes at most `seconds` of processor time plus one pass over all objects; other
    Python threads wait meanwhile. Call it between two runs, for objects that a weak reference shows to be alive."""
    if not _ready():
        return []
    finder = referrers()
    found, _ = finder.find(list(things), {id(things), id(sys._getframe(1))}, finder.Deadline(seconds), all_of_them=True)
    holders = finder.together(found)
    if holders:
        trace({"kind": "HELD", "by": "python", "owner": _number(owner), **finder.held(holders)})
    lines: list[str] = finder.for_trace(holder.words for holder in holders)
    return lines


def decisions(start: int = 0) -> tuple[list[dict[str, Any]], int]:
    """The lines of the trace from number `start` on, and the `start` for the next call. With `start` 0, the first line
    is the oldest line that is kept."""
    if not _ready():
        return [], start
    lines: list[dict[str, Any]] = []
    buffer, following = ctypes.create_string_buffer(1 << 16), _U64(start)
    while True:
        length = _check(_library.decisions(buffer, len(buffer), following.value, ctypes.byref(following)), "decisions")
        if not length:
            return lines, following.value
        lines += [json.loads(line) for line in buffer.raw[:length].decode("utf-8", "replace").splitlines()]


# ---- requests from outside this process

@dataclasses.dataclass(frozen=True)
class Request:
    """A request from outside. `kind` is trigger, stow, restore or release. In a request of memstow leaks it is collect
    or holders. Owner 0 means all owners. `reason` and `needed` belong to a trigger: pass them to decide(). memstow
    itself asks for a trigger when memory is short, or when an owner was not used for long."""
    kind: str
    ticket: int
    owner: int
    text: str
    reason: str = "request"
    needed: int = 0


def next_request(seconds: float = 1.0) -> Optional[Request]:
    """Waits for the next request from outside, but not longer than `seconds` or 49 days. Does not wait if `seconds` is
    0 or less. Returns None if no request came. After the first call the program must answer all requests, except for
    those of memstow leaks (see on_look)."""
    milliseconds = int(min(max(seconds * 1000, 0), 2**32 - 1))
    return _request(_library.request_next, milliseconds) if _ready() else None


def _request(ask: Callable[..., int], *how: int) -> Optional[Request]:
    raw = _Request(size=ctypes.sizeof(_Request))
    if not _check(ask(ctypes.byref(raw), *how), "requests"):
        return None
    return Request(ASKS.get(raw.kind, str(raw.kind)), raw.ticket, raw.owner, raw.text.decode("utf-8", "replace"),
                   REASON_NAMES.get(raw.reason, "request"), raw.needed)


def answer(request: Union[Request, int], result: int, text: str = "") -> None:
    """Answers a request with a number of bytes, or -errno, and a line of text."""
    if _ready():
        ticket = request if isinstance(request, int) else request.ticket
        _check(_library.request_done(ticket, result, _encoded(text)), "answer")


# ---- requests of memstow leaks; snapshots; full_cleanup()

_looks: Any = None # memstow_looks.Looks


def _begin_looks() -> Any:
    """The process's Looks, whose thread waits for requests of memstow leaks. The first call makes the Looks and starts
    its thread. None: the library is too old for such requests."""
    global _looks
    if _looks is None and _library.request_of is not _no_such_call:
        _looks = _made.setdefault("looks", _beside("memstow_looks").Looks(
            functools.partial(_request, _library.request_of), answer, _holders_of))
    if _looks is not None:
        _looks.begin()
    return _looks


def _holders_of(stacks: list[str], before: int, seconds: float, more_later: bool) -> tuple[int, bool]:
    """Notes in the trace the holders of the blocks of these call stacks. Returns the number of stacks that were
    searched in time, and whether other stacks are left. more_later: a later call gets more time."""
    referrers() # loads the module that memstow_blocks imports
    blocks = _beside("memstow_blocks")
    wanted = blocks.parse(stacks)
    lines, missed = blocks.holders_of(wanted, before, _library.blocks,
                                      lambda owner: _labels.get(owner, owner), seconds, more_later)
    for line in lines:
        trace({"kind": "HELD", "by": "python", **line})
    return len({one.path for one in wanted} - missed), bool(missed)


def on_look(handler: Optional[Callable[[Request], Any]]) -> None:
    """Gives the requests of memstow leaks (kinds collect and holders) to the handler, which is called on a thread of
    memstow's. The handler makes sure that look() is called at a suitable moment. If the handler is None, the requests
    are served between two runs."""
    looks = _begin_looks() if _ready() else None
    if looks is not None:
        looks.handler = handler


def look(request: Request) -> tuple[int, str]:
    """Serves a request of memstow leaks, now and on this thread. Returns the answer: a number or -errno, and a line of
    text."""
    looks = _begin_looks()
    return looks.look(request) if looks is not None else (-errno.ENOTSUP, "")


def snapshot(path: Union[str, os.PathLike[str]]) -> None:
    """Writes a snapshot of this process, as `memstow snapshot` does, and waits until it is written."""
    if _ready():
        _check(_library.snapshot(os.fsencode(path)), "snapshot")


_cleanup: Optional[Callable[[str], Any]] = None
_cleanup_lock = threading.Lock()


def on_full_cleanup(handler: Optional[Callable[[str], Any]]) -> None:
    """Sets the function that full_cleanup() calls. In ComfyUI the node pack sets it."""
    global _cleanup
    with _cleanup_lock:
        _cleanup = handler


def full_cleanup(reason: str) -> bool:
    """Asks for the effect of ComfyUI's button "Free model and node cache" at the end of the current run. False if there
    is no handler."""
    with _cleanup_lock:
        handler = _cleanup
    if handler is None:
        _ready()
        return False
    handler(reason)
    return True


# ---- memstow.comfy, for other node packs in ComfyUI: a file of its own beside this one

if TYPE_CHECKING:
    import memstow_packs
    comfy = memstow_packs # not `import … as comfy`, which mypy hides from users
else:
    try: # entered in sys.modules, too, so that `import memstow.comfy` finds it although this is not a package
        comfy = sys.modules[f"{__name__}.comfy"] = _beside("memstow_packs")
    except FileNotFoundError: # memstow_packs.py is not beside this file
        pass


# ---- python -m memstow

def _command() -> Optional[str]:
    """The path of this installation's command memstow. If there is none, the path of the first memstow in PATH, or
    None."""
    import importlib.metadata
    import shutil
    try:
        installed = importlib.metadata.distribution("memstow")
    except importlib.metadata.PackageNotFoundError:
        return shutil.which("memstow")
    files = [file for file in installed.files or () if file.parts[-2:] == ("bin", "memstow")]
    return str(installed.locate_file(files[0])) if files else shutil.which("memstow")


if __name__ == "__main__":
    _path = _command()
    if _path is None:
        sys.exit("memstow: the command memstow was not found: neither beside this module nor in PATH")
    # The command replaces this program in the same process. So signals reach it, and its exit code is the process's.
    os.execv(_path, ["memstow", *sys.argv[1:]])
