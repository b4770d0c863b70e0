"""When a loop stops, and whether a workflow runs in an iteration. In: callables, or {"port", "op", "value"} out of
JSON, and the values of ports. Out: true or false. Never evaluates text: the operators are a fixed list."""
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
    """A port's value compared with another. A port that has no value yet: not met."""

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
    """A condition out of JSON, or the callable that it is already; None for none."""
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
    return Condition(what["port"], what["op"], value)


def conditions_of(what: Any, count: int) -> list[Optional[Test]]:
    """One condition or None for each of so many workflows. A single one is for a single workflow."""
    if what is None:
        return [None] * count
    found = list(what) if isinstance(what, (list, tuple)) else [what]
    if len(found) != count:
        raise LoopError(
            f"when has {len(found)} entries for {count} workflows: one each, null where a workflow always runs")
    return [condition_of(one) for one in found]
