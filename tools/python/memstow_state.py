"""The store: keeps values from one run to the next, by loop and id, in memory that memstow manages.

    store = memstow_state.open("refine")
    store.begin()
    store.put("latent", latent)
    store.commit()                 # from here on the values are valid, all together
    latent = store.get("latent")   # a view of the same bytes; writes change only the view

In: values. Out: memory and files that libmemstow.so manages (memstow.h, "the store"). The bytes of a value count once,
for an owner with the name state:LOOP/ID. Values that memstow_serialize cannot turn into bytes, above all models, are
held by reference. Any thread may call. Without memstow there is no store: open then raises StateError, which says how
to start with memstow. docs/state.md is the guide."""
from __future__ import annotations

import ctypes
import errno
import os
import pathlib
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Optional, Union

import memstow
import memstow_serialize
from memstow_serialize import Serialized, SerializeError

__all__ = ["StateBusy", "StateError", "Store", "available", "open"]

MINOR = 9
MOST_LIMIT = 2**64 - 1
PLACES = {1: "ram", 2: "file", 3: "stowed"}
_MISSING = object()


class StateError(OSError, ValueError):
    """A failed call: errno and the reason."""


class StateBusy(StateError):
    """Another loop uses the persist_prefix (the files of persistent values), in this process or in another."""


# ---- the structures of memstow.h

class _Part(ctypes.Structure):
    _fields_ = [("start", ctypes.c_uint64), ("length", ctypes.c_uint64)]


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("in_file", ctypes.c_uint32), ("ram_limit", ctypes.c_uint64),
                ("prefix", ctypes.c_char_p), ("directory", ctypes.c_char_p)]


class _Value(ctypes.Structure):
    _fields_ = [("size", ctypes.c_uint32), ("owner", ctypes.c_uint32), ("place", ctypes.c_uint32),
                ("parts", ctypes.c_uint32), ("generation", ctypes.c_uint64), ("bytes", ctypes.c_uint64),
                ("held_bytes", ctypes.c_uint64), ("id", ctypes.c_char * 208), ("type", ctypes.c_char * 64),
                ("view", ctypes.c_void_p), ("view_length", ctypes.c_uint64), ("part", ctypes.POINTER(_Part))]


_I32, _I64, _U32, _U64, _TEXT, _ANY = (ctypes.c_int32, ctypes.c_int64, ctypes.c_uint32, ctypes.c_uint64,
                                       ctypes.c_char_p, ctypes.c_void_p)
_CALLS = {"open": (_I64, _TEXT, _ANY), "begin": (_I64, _I64), "put": (_I64, _I64, _TEXT, _TEXT, _ANY, _U32),
          "commit": (_I64, _I64), "abandon": (_I32, _I64), "get": (_I32, _I64, _TEXT, _ANY),
          "get_committed": (_I32, _I64, _TEXT, _ANY),
          "list": (_I64, _I64, _ANY, _U32, _U32), "generation": (_I64, _I64), "release": (_I32, _I64, _TEXT),
          "close": (_I32, _I64, _U32),}


class _Library:
    """The functions memstow_state_* of the library in this process, and munmap()."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        for name, (result, *arguments) in _CALLS.items():
            function = getattr(library, f"memstow_state_{name}", None)
            if function is not None:
                function.restype, function.argtypes = result, arguments
            setattr(self, name, function)
        self.munmap = library.munmap
        self.munmap.argtypes = (_ANY, ctypes.c_size_t)

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Callable[..., Any]: ...


_library: Optional[_Library] = None


def _calls() -> _Library:
    """The functions, looked up when they are first used."""
    global _library
    _library = _library or _Library()
    return _library


def available() -> bool:
    """Whether this process was started under a memstow that has a store."""
    version = memstow.version()
    return memstow.active() and version is not None and version >= (1, MINOR)


def _check(result: int, what: str) -> int:
    if result >= 0:
        return result
    text = (memstow._library.error() or b"").decode("utf-8", "replace")
    kind = StateBusy if result == -errno.EBUSY else StateError
    raise kind(-result, f"{what}: {text or os.strerror(-result)}")


def _encoded(text: str, what: str) -> bytes:
    if not isinstance(text, str) or not text or "\0" in text:
        raise StateError(errno.EINVAL, f"{what} is a text that is not empty, not {text!r}")
    return text.encode("utf-8", "surrogatepass")


def _home() -> str:
    """The default folder for the files of persistent values."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    folder = pathlib.Path(home) / "memstow"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return str(folder)


def open(loop: str, *, use_ram: bool = True, ram_limit: Optional[int] = None, persist_prefix: Optional[str] = None,
         directory: Union[str, os.PathLike[str], None] = None) -> "Store":
    """Opens a loop's store. `persist_prefix` is a name below `directory`. With it, the store continues from the last
    committed generation, even if the process that committed this generation was killed. With use_ram=False, all values
    are in files. `ram_limit` is the number of bytes of values that may be in memory; further values are in files."""
    if not available():
        raise StateError(errno.ENODEV, "memstow must keep a loop's state: " + memstow.ADVICE)
    if ram_limit is not None and (type(ram_limit) is not int or ram_limit < 0):
        raise StateError(errno.EINVAL, f"ram_limit is a number of bytes, not {ram_limit!r}")
    options = _Options(size=ctypes.sizeof(_Options), in_file=not use_ram or ram_limit == 0,
                       ram_limit=min(ram_limit or 0, MOST_LIMIT))
    if persist_prefix is not None:
        options.prefix = _encoded(persist_prefix, "a prefix")
        directory = _home() if directory is None else directory
    if directory is not None:
        options.directory = os.fsencode(directory)
    what = f"loop {loop!r}" + (f", prefix {persist_prefix!r}" if persist_prefix is not None else "")
    number = _check(_calls().open(_encoded(loop, "a loop's name"), ctypes.byref(options)), what)
    return Store(loop, number, persist_prefix, use_ram and ram_limit != 0)


def _view_of(address: int, length: int) -> Any:
    """Memory that is given back when no piece of it is in use any more."""
    memory = (ctypes.c_char * length).from_address(address)
    weakref.finalize(memory, _calls().munmap, address, length).atexit = False
    return memory


class Store:
    """The values of one loop. A value that was not put in an iteration stays as it was."""

    def __init__(self, loop: str, number: int, prefix: Optional[str], in_ram: bool) -> None:
        self.loop, self.prefix = loop, prefix
        self._number, self._may_refer = number, prefix is None and in_ram
        self._lock = threading.RLock()
        # id → (value, generation, reason) of a committed value that is held by reference
        self._held: dict[str, tuple[Any, int, str]] = {}
        # id → what was put in this iteration: (value, reason) for a value that is held by reference, None for bytes
        self._put: dict[str, Optional[tuple[Any, str]]] = {}
        self._begun = False

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *_error: Any) -> None:
        self.close(keep=True)

    def _call(self, name: str, *arguments: Any, what: str) -> int:
        return _check(getattr(_calls(), name)(self._number, *arguments), f"loop {self.loop!r}: {what}")

    @property
    def generation(self) -> int:
        """The number of the last commit, counted from 1, or 0 if nothing was committed."""
        return self._call("generation", what="generation")

    def begin(self) -> None:
        """Begins an iteration."""
        with self._lock:
            self._call("begin", what="begin")
            self._begun = True
            self._put.clear()

    def put(self, id: str, value: Any) -> None:
        """Copies a value into the current iteration. A value that cannot be copied is held by reference, or refused if
        the store keeps its values in files."""
        name = _encoded(id, "an id")
        try:
            serialized = memstow_serialize.serialize(value)
        except SerializeError as error:
            self._refer(id, value, str(error))
            return
        self._write(name, serialized)
        with self._lock:
            self._put[id] = None

    def _write(self, name: bytes, serialized: Serialized) -> None:
        parts = (_Part * len(serialized.segments))()
        kept: list[Any] = []
        for part, segment in zip(parts, serialized.segments):
            part.start, part.length = _address(segment, kept)
        self._call("put", name, serialized.type.encode(), ctypes.byref(parts), len(parts),
                   what=f"put {name.decode(errors='replace')!r}")

    def _refer(self, id: str, value: Any, why: str) -> None:
        if not self._may_refer:
            where = "a prefix" if self.prefix is not None else "files"
            raise StateError(errno.EINVAL, f"loop {self.loop!r}: {id!r} cannot be kept in {where}: {why}")
        with self._lock:
            if not self._begun:
                raise StateError(errno.EPERM, f"loop {self.loop!r}: put {id!r}: no iteration has begun")
            self._put[id] = (value, why)

    def commit(self) -> int:
        """Makes the iteration's values valid, all together. From now on get_committed() returns them. If the store has
        a prefix, the values are on the disk when commit() returns. Returns the generation."""
        with self._lock:
            generation = self._call("commit", what="commit")
            for id, reference in self._put.items():
                if reference is None:
                    self._held.pop(id, None)
                    continue
                # drop the bytes of an earlier put of this id, if there was one
                _calls().release(self._number, id.encode("utf-8", "surrogatepass"))
                self._held[id] = (reference[0], generation, reference[1])
            self._put.clear()
            self._begun = False
            return generation

    def abandon(self) -> None:
        """Drops all values that were put since begin."""
        with self._lock:
            self._call("abandon", what="abandon")
            self._begun = False
            self._put.clear()

    def get(self, id: str, default: Any = _MISSING) -> Any:
        """A value that was put in the current iteration, else the last committed value. Raises KeyError if there is no
        value and no default."""
        with self._lock:
            put = self._put.get(id)
            if put is not None:
                return put[0]
            if id in self._held and id not in self._put:
                return self._held[id][0]
        return self._read("get", id, default)

    def get_committed(self, id: str, default: Any = _MISSING) -> Any:
        """The last committed value, never a value of the current iteration. It is for readers that are not part of the
        iteration. Raises KeyError if there is no value and no default."""
        with self._lock:
            if id in self._held:
                return self._held[id][0]
        return self._read("get_committed", id, default)

    def _read(self, call: str, id: str, default: Any) -> Any:
        """A view of the bytes that a call of the library gives."""
        value = _Value(size=ctypes.sizeof(_Value))
        result = getattr(_calls(), call)(self._number, _encoded(id, "an id"), ctypes.byref(value))
        if result == -errno.ENOENT:
            if default is _MISSING:
                raise KeyError(id)
            return default
        _check(result, f"loop {self.loop!r}: {call} {id!r}")
        memory = memoryview(_view_of(value.view, value.view_length)).cast("B")
        segments = [memory[part.start:part.start + part.length] for part in value.part[:value.parts]]
        return memstow_serialize.deserialize(Serialized(value.type.decode(), segments))

    def _values(self) -> list[_Value]:
        room = 64
        while True:
            values = (_Value * room)()
            count = self._call("list", ctypes.byref(values), room, ctypes.sizeof(_Value), what="list")
            if count <= room:
                return list(values[:count])
            room = count

    def info(self) -> list[dict[str, Any]]:
        """A row for each value: id, type, bytes, generation, where ("ram", "file", "stowed" or "reference"), owner and
        policy. The row of a value that is held by reference also has the reason, as `why`."""
        with self._lock:
            referred = {id: held for id, held in self._held.items() if id not in self._put}
            referred.update(
                {id: (put[0], self.generation + 1, put[1])
                 for id, put in self._put.items() if put is not None})
            values = [value for value in self._values() if value.id.decode("utf-8", "surrogatepass") not in referred]
        rows = [{"id": value.id.decode("utf-8", "surrogatepass"), "type": value.type.decode(), "bytes": value.bytes,
                 "generation": value.generation, "where": PLACES.get(value.place, "ram"), "owner": value.owner,
                 "policy": memstow.figures(value.owner).policy} for value in values]
        rows += [{"id": id, "type": type(value).__name__, "bytes": 0, "generation": generation, "where": "reference",
                  "owner": None, "policy": None, "why": why} for id, (value, generation, why) in referred.items()]
        return sorted(rows, key=lambda row: str(row["id"]))

    def references(self) -> dict[str, Any]:
        """Returns a dictionary from ids to the values that are held by reference. Takes no lock, so it never waits for
        a commit."""
        held, put = self._held.copy(), self._put.copy()
        return {id: value[0] for id, value in (*held.items(), *put.items()) if value is not None}

    def ids(self) -> list[str]:
        return [row["id"] for row in self.info()]

    def set_policy(self, policy: Optional[str], priority: int = 0, id: Optional[str] = None) -> None:
        """Sets what a trigger does with one value or all values: "keep", "stow" (to a file) or None. "free" counts as
        keep."""
        for row in self.info():
            if row["owner"] and id in (None, row["id"]):
                memstow.Owner(row["owner"], "state", f"state:{self.loop}/{row['id']}",
                              "store").set_policy(policy, priority)

    def release(self, id: str) -> None:
        """Removes the value, also from the disk. Raises KeyError if there is no such value."""
        with self._lock:
            held = [self._held.pop(id, None), self._put.pop(id, None)]
            result = _calls().release(self._number, _encoded(id, "an id"))
        if result == -errno.ENOENT and not any(held):
            raise KeyError(id)
        if result != -errno.ENOENT:
            _check(result, f"loop {self.loop!r}: release {id!r}")

    def close(self, keep: bool = False) -> None:
        """Drops all values. With `keep`, committed values stay in the files of the prefix."""
        with self._lock:
            self._held.clear()
            self._put.clear()
            if self._number:
                self._call("close", int(keep), what="close")
            self._number, self._begun = 0, False


def _address(segment: Any, kept: list[Any]) -> tuple[int, int]:
    """Address and length of a piece of memory. Adds to `kept` the object that keeps the memory valid."""
    view = memoryview(segment).cast("B") if len(segment) else memoryview(b"")
    if not view.nbytes:
        return 0, 0
    if view.readonly:  # ctypes requires writable memory, and bytes and some numpy arrays are not writable
        return _address_of_readonly(segment, view, kept)
    memory = (ctypes.c_char * view.nbytes).from_buffer(view)
    kept.append(memory)
    return ctypes.addressof(memory), view.nbytes


def _address_of_readonly(segment: Any, view: memoryview, kept: list[Any]) -> tuple[int, int]:
    if isinstance(segment, bytes):
        kept.append(segment)
        return ctypes.cast(ctypes.c_char_p(segment), ctypes.c_void_p).value or 0, view.nbytes
    kept.append(view.tobytes())
    return ctypes.cast(ctypes.c_char_p(kept[-1]), ctypes.c_void_p).value or 0, view.nbytes
