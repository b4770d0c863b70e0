"""Checks whether a value has the type that a port takes. In: values, and ComfyUI's words for types. Out: errors that
name port and type. Types that are unknown here accept everything, because packs make their own. Never imports
PyTorch."""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import memstow_serialize
from memstow_serialize import Serialized

from .graph import ANY, LoopError
from .ports import COMBO, Port


PICKLE = "pickle " # the beginning of a pickle's digest


def _has_shape(dimensions: tuple[int, ...]) -> Callable[[Any], bool]:
    return lambda value: hasattr(value, "shape") and hasattr(value, "dtype") and len(value.shape) in dimensions


CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "INT": (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    "FLOAT": (lambda value: isinstance(value, (int, float)) and not isinstance(value, bool), "a number"),
    "STRING": (lambda value: isinstance(value, str), "a text"),
    "BOOLEAN": (lambda value: isinstance(value, bool), "true or false"),
    "COMBO": (lambda value: isinstance(value, (str, int, float, bool)), "one of its choices"),
    "IMAGE": (_has_shape((4,)), "a tensor of four dimensions"),
    "MASK": (_has_shape((2, 3, 4)), "a tensor of two to four dimensions"),
    "LATENT": (lambda value: isinstance(value, Mapping) and "samples" in value, 'a dictionary with "samples"'),
    "CONDITIONING": (lambda value: isinstance(value, list), "a list"),
}


def check_value(port: Port, value: Any) -> None:
    """LoopError if a port cannot take this value."""
    words = [word.strip() for word in port.type.split(",")]
    if ANY in words or any(word not in CHECKS or CHECKS[word][0](value) for word in words):
        if port.type != COMBO or port.options is None or value in port.options:
            return
        fault = f"is not one of its {len(port.options)} choices" if port.options else \
            "cannot be right: the inputs that the port feeds have no choice in common"
        raise LoopError(f"port {port.id}: {value!r} {fault}")
    raise LoopError(
        f"port {port.id} takes {port.type}, {CHECKS[words[0]][1]}; its value is of type {type(value).__name__}"
        f"{_shape(value)}")


def _shape(value: Any) -> str:
    return f" with the shape {list(value.shape)}" if hasattr(value, "shape") else ""


def digests(inputs: Mapping[str, Any]) -> dict[str, str]:
    """A text for each input. Equal values have equal texts, also in another process. Only pickles are an exception,
    because another process may pickle an equal value to other bytes."""
    return {name: _digest(memstow_serialize.serialize(value)) for name, value in inputs.items()}


def _digest(value: Serialized) -> str:
    found = hashlib.sha256()
    for piece in value.segments:
        found.update(memoryview(piece).cast("B") if len(piece) else b"")
    return f"{PICKLE if value.type.startswith('CUSTOM') else ''}{found.hexdigest()}"
