"""Conditions: when a loop stops, and whether a workflow runs in an iteration. In: callables, or {"port", "op", "value"}
from JSON, and the values of ports. Out: true or false. Never evaluates text: the operators are a fixed list."""
from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Optional

from .graph import LoopError

Values = Mapping[str, Any]
Test = Callable[[Values], bool]
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
    "contains": operator.contains, "in": lambda value, group: operator.contains(group, value)}
PLAIN = (str, int, float, bool)


class Condition:
    """Compares a port's value with a constant. It is false for a port without a value."""

    def __init__(self, port: str, op: str, value: Any) -> None:
        self.port, self.op, self.value = port, op, value

    def __call__(self, values: Values) -> bool:
        if self.port not in values:
            return False
        found = values[self.port]
        if not isinstance(found, (*PLAIN, list)):
            raise LoopError(
                f"the condition on port {self.port} compares numbers, text and truth values; its value is of type "
                f"{type(found).__name__}")
        try:
            return bool(OPERATORS[self.op](found, self.value))
        except TypeError:
            raise LoopError(f"the condition on port {self.port} cannot be decided: {type(found).__name__} {self.op} "
                            f"{type(self.value).__name__}") from None

    def __repr__(self) -> str:
        return f"{self.port} {self.op} {self.value!r}"


def condition_of(what: Any) -> Optional[Test]:
    """The condition in a JSON document. A callable is returned as it is. None if there is no condition."""
    if what is None or callable(what):
        test: Optional[Test] = what
        return test
    if not isinstance(what, Mapping) or set(what) != {"port", "op", "value"} or not isinstance(what["port"], str):
        raise LoopError('a condition is {"port": "…", "op": "…", "value": …}, with these three members')
    if not isinstance(what["op"], str) or what["op"] not in OPERATORS:
        raise LoopError(f"a condition's op is one of {' '.join(OPERATORS)}; not {what['op']!r}")
    value = what["value"]
    if not isinstance(value, (*PLAIN, list)) or (
            isinstance(value, list) and not all(isinstance(v, PLAIN) for v in value)):
        raise LoopError("a condition's value is a number, a text, true or false, or a list of these")
    if what["op"] == "in" and not isinstance(value, (str, list)):
        raise LoopError(f"a condition with the op in has a text or a list as value; not {value!r}")
    return Condition(what["port"], what["op"], value)


def conditions_of(what: Any, count: int) -> list[Optional[Test]]:
    """A list with a condition or None for each of `count` workflows. `what` is such a list. A condition outside of a
    list is accepted only if `count` is 1."""
    if what is None:
        return [None] * count
    found = list(what) if isinstance(what, (list, tuple)) else [what]
    if len(found) != count:
        raise LoopError(
            f"when has {len(found)} entries for {count} workflows: one each, null where a workflow always runs")
    return [condition_of(one) for one in found]
