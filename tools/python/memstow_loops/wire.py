"""Values over HTTP: a line of JSON, followed by the raw bytes of tensors and arrays. In: a JSON document, and values by
name. Out: the bytes to send; on the other side, the same document and values. Never sends a pickle, because reading a
pickle runs code. So a value that only pickle can express stays in its process."""
from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import memstow_serialize
from memstow_serialize import Serialized, SerializeError

from .graph import LoopError

CONTENT_TYPE = "application/x-memstow-values"
MOST_LINE = 64 << 20 # bytes of the line of JSON
TENSORS = ("TORCH_TENSOR", "NESTED")


def packed(document: Any, values: Mapping[str, Serialized]) -> Iterator[Any]:
    """The bytes to send, piece by piece. The pieces are not copies."""
    tables = {name: [value.type, [len(piece) for piece in value.segments]] for name, value in values.items()}
    yield json.dumps({"document": document, "values": tables}).encode() + b"\n"
    for value in values.values():
        yield from (piece for piece in value.segments if len(piece))


def as_bytes(value: Any) -> Serialized:
    """The value as bytes. Raises SerializeError if only pickle can express the value, or if the value is a model."""
    found = memstow_serialize.serialize(value)
    if found.type.startswith("CUSTOM"):
        raise SerializeError(f"a {type(value).__name__} has no bytes that another process may read")
    return found


def unpacked(line: bytes, read: Callable[[int], Any]) -> tuple[Any, dict[str, Any]]:
    """Returns document and values. `read(n)` gives the next n bytes after the line, or fewer at the end. LoopError: the
    bytes are not of this format."""
    try:
        head = json.loads(line)
        document, tables = head["document"], head["values"]
        found = {str(name): Serialized(str(kind), [_piece(read, length) for length in lengths])
                 for name, (kind, lengths) in tables.items()}
        return document, {name: _value(of) for name, of in found.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LoopError(f"these are not the bytes of values: {error}") from None


def _piece(read: Callable[[int], Any], length: Any) -> Any:
    if type(length) is not int or length < 0:
        raise LoopError(f"a piece of memory is not {length!r} bytes long")
    piece = read(length) if length else b""
    if len(piece) != length:
        raise LoopError("the bytes of values end too early")
    return piece


def _value(of: Serialized) -> Any:
    """A value from its bytes. If the value may have tensors, and PyTorch is not installed, returns a description of
    the value."""
    if of.type in TENSORS and importlib.util.find_spec("torch") is None:
        return {"not_json": json.loads(bytes(of.segments[0])).get("type")}
    return memstow_serialize.deserialize(of, pickles=False)


def from_bytes(body: bytes) -> tuple[Any, dict[str, Any]]:
    """The document and the values in a whole body."""
    end = body.find(b"\n", 0, MOST_LINE)
    rest = memoryview(bytearray(memoryview(body)[end + 1:]))
    at = 0

    def read(length: int) -> Any:
        nonlocal at
        at += length
        return rest[at - length:at]
    return unpacked(body[:max(end, 0)], read)
