"""Turns values into a type and pieces of memory, and back. The store (memstow_state.py) keeps type and pieces from one
run to the next.

    serialized = memstow_serialize.serialize({"samples": tensor, "step": 3})
    value = memstow_serialize.deserialize(serialized)

In: tensors, arrays, texts, numbers, and lists, tuples and dicts of them; anything that can be pickled. Out: a table in
JSON, and the raw bytes of each tensor, array and buffer, which are not copied if they lie in one piece on the host. On
the way back, tensors use the given bytes if these are writable, and tensors of a device are made on the host. Never
uses base64. Never serializes a model; is_reference() gives the reason. If the caller of deserialize() does not trust
the bytes, it must give pickles=False, because a pickle runs code. The store does read pickles, because its bytes come
only from this process, or from files that this user wrote. Only the standard library is needed. torch and numpy are
used if the program has imported them or the bytes need them, and cloudpickle is used if pickle cannot handle a
value."""
from __future__ import annotations

import ctypes
import dataclasses
import functools
import importlib
import importlib.util
import io
import json
import logging
import math
import pickle
import sys
from collections.abc import Sequence
from typing import Any, Optional

__all__ = ["SerializeError", "Serialized", "deserialize", "is_reference", "serialize"]

log = logging.getLogger("memstow")
DEPTH = 200
MOST_AGAIN = 10_000 # most visits of lists, tuples and dicts that were visited before; with more, the value is pickled
SCALARS = (type(None), bool, int, float, str)
QUANTIZED = ("torch.qint", "torch.quint") # the beginnings of the names of quantized types
# Classes whose objects have weights, often on a device. Weights are shared and not copied. Other packs derive classes
# from these.
MODELS = frozenset({
    "ModelPatcher", "CLIP", "VAE", "ControlBase", "ControlNet", "T2IAdapter", "StyleModel", "ClipVisionModel",
    "CLIPVision", "Hook", "HookGroup", "GLIGEN"
})


class SerializeError(ValueError):
    """The value cannot be turned into bytes, or the bytes do not come from serialize."""


class _Reference(SerializeError):
    """The value must be passed by reference. The text of the exception says why."""


class _Tangled(Exception):
    """The value must be written by pickle, for one of two reasons:
    - It is nested too deep, for example because it contains itself. A JSON table of it could be endless.
    - It contains the same parts very many times. A JSON table of it could be far larger than the value."""


@dataclasses.dataclass
class Serialized:
    """type: TORCH_TENSOR, NUMPY_ARRAY, STRING, BYTES, JSON, NESTED, CUSTOM (with a pickle) or CUSTOM_CLOUDPICKLE.
    segments[0] is a JSON table, which tells how the value is made of the other segments. These are raw bytes. Where
    possible they are the value's own memory, and keep this memory alive."""
    type: str
    segments: list[Any]


# ---- values that must be passed by reference

def _module(name: str) -> Any:
    return sys.modules.get(name)


def _model_reason(value: Any) -> Optional[str]:
    torch = _module("torch")
    names = {base.__name__ for base in type(value).__mro__}
    if names & MODELS or (torch and isinstance(value, torch.nn.Module)):
        return f"a {type(value).__name__} has weights, which are shared and not copied"
    if not isinstance(value, type) and (hasattr(type(value), "model_patches_to") or hasattr(value, "__dict__") and
                                        ("patcher" in vars(value) or "model_patcher" in vars(value))):
        return f"a {type(value).__name__} leads to a model's patcher"
    return None


def is_reference(value: Any) -> Optional[str]:
    """The reason why a value must be passed by reference within the process: it is a model, leads to one, or cannot be
    pickled. None: it can be turned into bytes."""
    try:
        serialize(value)
    except SerializeError as error:
        return str(error)
    return None


# ---- from a value to bytes

@functools.lru_cache(maxsize=None)
def _is_read(dtype: Any) -> bool:
    """Whether PyTorch can make tensors of this type from bytes."""
    try:
        sys.modules["torch"].frombuffer(bytearray(16), dtype=dtype)
        return True
    except (RuntimeError, TypeError, ValueError):
        return False


def _is_plain(tensor: Any) -> bool:
    """Whether bytes, shape and strides are all that there is to a tensor."""
    if str(tensor.dtype).startswith(QUANTIZED) and not tensor.is_quantized:
        raise _Reference(f"a tensor of {tensor.dtype} without a scale has no form that PyTorch reads")
    return (tensor.layout == sys.modules["torch"].strided and _is_read(tensor.dtype)
            and not (tensor.is_quantized or tensor.is_meta or tensor.is_nested))


class _Writer:
    def __init__(self) -> None:
        self.segments: list[Any] = [b""]
        self.seen: dict[Any, int] = {}
        # id of a tensor in the pickle that is being made → the tensor and its table
        self.shared: dict[int, tuple[Any, dict[str, Any]]] = {}
        self.pickled = ""
        self.met: set[int] = set()  # ids of the lists, tuples and dicts that were visited
        self.again = 0

    def add(self, memory: Any) -> int:
        self.segments.append(memory)
        return len(self.segments) - 1

    def lent(self, owner: Any, address: int, length: int) -> int:
        """Adds memory of an object. The object lives as long as a part of this memory is in use."""
        if not length:
            return self.add(b"")
        memory = (ctypes.c_char * length).from_address(address)
        memory.owner = owner  # type: ignore[attr-defined] # keeps it alive
        return self.add(memory)

    def tensor(self, value: Any) -> dict[str, Any]:
        torch = sys.modules["torch"]
        if not _is_plain(value):
            return self.leaf(value)
        host = value.detach().resolve_conj().resolve_neg().to("cpu")
        span = 1 + sum((size - 1) * stride for size, stride in zip(host.shape, host.stride())) if host.numel() else 0
        if span != host.numel():  # gaps, or elements that overlap
            host, span = host.contiguous(), host.numel()
        length, key = span * host.element_size(), (host.data_ptr(), span, str(host.dtype))
        if key not in self.seen or not length:
            self.seen[key] = self.lent(host, host.data_ptr(), length)
        kind = [] if type(value) is torch.Tensor else [_name(value)]
        return {"T": [self.seen[key], str(host.dtype).removeprefix("torch."), list(host.shape), list(host.stride()),
                      *kind]}

    def array(self, value: Any) -> dict[str, Any]:
        if value.dtype.hasobject or value.dtype.names or not value.dtype.itemsize:
            return self.leaf(value)
        host = value if value.flags.c_contiguous else value.copy(order="C")
        return {"N": [self.lent(host, host.ctypes.data, host.nbytes), host.dtype.str, list(host.shape)]}

    def leaf(self, value: Any) -> dict[str, Any]:
        """The table of a value that becomes a pickle. Tensors and large buffers in it are stored beside the pickle."""
        buffers: list[Any] = []
        begin = len(self.segments)
        self.shared.clear()
        text, kind = _pickle(value, buffers.append, self.within), "CUSTOM"
        if text is None:
            buffers.clear()
            del self.segments[begin:]
            self.shared.clear()
            self.seen = {key: number for key, number in self.seen.items() if number < begin}
            text, kind = _cloudpickle(value, buffers.append, self.within), "CUSTOM_CLOUDPICKLE"
        self.pickled = max(self.pickled, kind)
        return {"P": [_name(value), self.add(text), *(self.add(buffer.raw()) for buffer in buffers)]}

    def within(self, value: Any) -> Optional[dict[str, Any]]:
        """The table of a tensor that is stored beside the pickle. None if the value is not such a tensor; in that case
        pickle writes the value."""
        torch = _module("torch")
        if not torch or type(value) is not torch.Tensor or value.requires_grad or not _is_plain(value) or vars(value):
            return None
        if id(value) not in self.shared: # the same table object for each reference, so that pickle sees one tensor
            self.shared[id(value)] = value, self.tensor(value)
        return self.shared[id(value)][1]

    def look_for_tangles(self, value: Any, depth: int) -> None:
        self.again += id(value) in self.met
        self.met.add(id(value))
        if depth > DEPTH or self.again > MOST_AGAIN:
            raise _Tangled

    def any(self, value: Any, depth: int = 0) -> Any:
        kind, torch, numpy = type(value), _module("torch"), _module("numpy")
        if kind in SCALARS:
            return value
        if kind in (list, tuple, dict) and value:
            self.look_for_tangles(value, depth)
        if kind is list:
            return [self.any(item, depth + 1) for item in value]
        if kind is tuple:
            return {"t": [self.any(item, depth + 1) for item in value]}
        if kind is dict:
            return {"d": [[self.any(key, depth + 1), self.any(item, depth + 1)] for key, item in value.items()]}
        if kind in (bytes, bytearray):
            return {"b" if kind is bytes else "B": self.add(value)}
        if torch and isinstance(value, torch.Tensor):
            return self.tensor(value)
        if numpy and kind is numpy.ndarray:
            return self.array(value)
        return self.leaf(value)


class _Beside:
    """The common part of the picklers of pickle and of cloudpickle. If there is a model anywhere in the value, the
    value must be passed by reference. An object for which `within` returns a table is stored beside the pickle."""
    within: Any

    def persistent_id(self, value: Any) -> Any:
        reason = _model_reason(value)
        if reason:
            raise _Reference(reason)
        return self.within(value)


class _Pickler(_Beside, pickle.Pickler):
    pass


class _Unpickler(pickle.Unpickler):
    persistent_load: Any


def _pickle(value: Any, buffer: Any, within: Any, kind: type = _Pickler) -> Optional[bytes]:
    """The pickle of a value. None if pickle cannot handle the value."""
    out = io.BytesIO()
    try:
        pickler = kind(out, protocol=5, buffer_callback=buffer)
        pickler.within = within
        pickler.dump(value)
        return out.getvalue()
    except _Reference:
        raise
    except Exception as error:  # a class's own __reduce__ may raise anything
        log.debug("memstow: %s cannot be pickled: %s", type(value).__name__, error)
        return None


def _cloudpickle(value: Any, buffer: Any, within: Any) -> bytes:
    text = None
    if importlib.util.find_spec("cloudpickle"):
        base = importlib.import_module("cloudpickle").CloudPickler
        text = _pickle(value, buffer, within, type("_CloudPickler", (_Beside, base), {}))
    if text is None:
        raise _Reference(f"a {type(value).__qualname__} cannot be pickled")
    return text


def _name(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _type_of(value: Any, writer: _Writer, table: Any) -> str:
    if writer.pickled:
        return writer.pickled
    if isinstance(table, dict):
        kinds = {"T": "TORCH_TENSOR", "N": "NUMPY_ARRAY", "b": "BYTES", "B": "BYTES"}
        if next(iter(table)) in kinds:
            return kinds[next(iter(table))]
    if isinstance(value, str):
        return "STRING"
    return "NESTED" if len(writer.segments) > 1 else "JSON"


def _written(value: Any) -> tuple[_Writer, Any]:
    reason, writer = _model_reason(value), _Writer()
    if reason:
        raise _Reference(reason)
    try:
        table = writer.any(value)
    except _Tangled:
        writer = _Writer()
        table = writer.leaf(value)
    if writer.pickled:
        _check_reads(value, writer, table)
    return writer, table


def _check_reads(value: Any, writer: _Writer, table: Any) -> None:
    """Checks that the pickle can be read. Some pickles cannot be read, for example those of some exceptions, and the
    store would lose such values."""
    try:
        _Reader(writer.segments, True).any(table)
    except Exception as error:
        raise _Reference(f"a {type(value).__name__}, or what it holds, cannot be read from its pickle: "
                         f"{type(error).__name__}: {error}") from error


def serialize(value: Any) -> Serialized:
    """Turns a value into bytes. SerializeError gives the reason if that is not possible."""
    try:
        writer, table = _written(value)
    except SerializeError:
        raise
    except Exception as error:  # the value's own code failed, for example that of a class derived from a tensor
        raise _Reference(f"a {type(value).__name__} cannot be turned into bytes: {type(error).__name__}: "
                         f"{error}") from error
    try:
        writer.segments[0] = json.dumps({"type": _name(value), "value": table}).encode("ascii")
    except ValueError as error:
        raise SerializeError(f"the value cannot be written: {error}") from None
    return Serialized(_type_of(value, writer, table), writer.segments)


# ---- from bytes to a value

class _Reader:
    def __init__(self, segments: Sequence[Any], pickles: bool) -> None:
        self.pickles = pickles
        # for values that come back as another type: (the type that was serialized, the type now)
        self.changed: set[tuple[str, str]] = set()
        self.segments = [memoryview(segment).cast("B") if len(segment) else memoryview(b"") for segment in segments]
        self.taken: set[int] = set() # pieces that own() has returned

    def at(self, number: Any) -> memoryview:
        if type(number) is not int or not 0 < number < len(self.segments):
            raise SerializeError("the table names a piece that is not there")
        return self.segments[number]

    def own(self, number: int) -> memoryview:
        """The piece for a bytes object, a bytearray or an array. Such an object may copy its piece. So if the bytes are
        not trusted, only one such object may use the piece. Otherwise the value could be far larger than the bytes."""
        if number in self.taken and not self.pickles:
            raise SerializeError("the table names a piece twice")
        self.taken.add(number)
        return self.at(number)

    def tensor(self, number: int, dtype: str, shape: list[int], stride: list[int], kind: str = "") -> Any:
        torch = importlib.import_module("torch")
        memory = self.at(number)
        if kind:
            self.changed.add((kind, "torch.Tensor"))
        if f"torch.{dtype}".startswith(QUANTIZED): # PyTorch would crash
            raise SerializeError(f"a tensor of {dtype} needs a scale, and these bytes have none")
        if not memory.nbytes:
            if all(shape):
                raise SerializeError("a tensor has no bytes")
            return torch.empty_strided(shape, stride, dtype=getattr(torch, dtype))
        if memory.readonly:
            memory = memoryview(bytearray(memory))
        flat = torch.frombuffer(memory, dtype=getattr(torch, dtype))
        if flat.numel() != math.prod(shape) and not self.pickles: # with a stride of 0, one byte makes terabytes
            raise SerializeError("a tensor has another number of elements than its bytes")
        # str() raises an exception if the tensor cannot be printed, for example a tensor of bits8. If such a tensor
        # were printed later, the exception would end ComfyUI's worker thread
        if not self.pickles:
            str(flat[:1])
        return flat.as_strided(shape, stride)

    def array(self, number: int, dtype: str, shape: list[int]) -> Any:
        numpy = importlib.import_module("numpy")
        memory = self.own(number)
        return numpy.frombuffer(bytearray(memory) if memory.readonly else memory,
                                dtype=numpy.dtype(dtype)).reshape(shape)

    def any(self, table: Any) -> Any:
        if isinstance(table, list):
            return [self.any(item) for item in table]
        if not isinstance(table, dict):
            return table
        (kind, of), = table.items()
        if kind == "t":
            return tuple(self.any(item) for item in of)
        if kind == "d":
            return {self.any(key): self.any(item) for key, item in of}
        if kind in ("b", "B"):
            return (bytes if kind == "b" else bytearray)(self.own(of))
        if kind == "T":
            return self.tensor(*of)
        if kind == "N":
            return self.array(*of)
        if not self.pickles:
            raise SerializeError("a pickle, which runs code, is not read here")
        return self.pickle(*of)

    def pickle(self, kind: str, number: int, *buffers: int) -> Any:
        reader = _Unpickler(io.BytesIO(self.at(number)), buffers=[self.at(buffer) for buffer in buffers])
        shared: dict[int, tuple[Any, Any]] = {} # by the table's id: all references to one tensor get the same tensor

        def load(table: Any) -> Any:
            if id(table) not in shared:
                shared[id(table)] = table, self.any(table)
            return shared[id(table)][1]

        reader.persistent_load = load
        value = reader.load()
        if _name(value) != kind:
            self.changed.add((kind, _name(value)))
        return value


def deserialize(serialized: Serialized, pickles: bool = True) -> Any:
    """The value that was serialized. Tensors and arrays use the segments' memory, if it is writable. pickles=False is
    for bytes that are not trusted. With it, SerializeError is raised for a pickle, and for a value that would take more
    memory than its bytes."""
    try:
        table = json.loads(bytes(serialized.segments[0]))
        reader = _Reader(serialized.segments, pickles)
        value = reader.any(table["value"])
    except SerializeError:
        raise
    except Exception as error:
        raise SerializeError(f"the bytes are not those of a value: {type(error).__name__}: {error}") from error
    for before, now in sorted(reader.changed):
        log.warning("memstow: a value went in as %s and comes back as %s", before, now)
    return value
