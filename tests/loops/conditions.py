#!/usr/bin/env python3
"""A condition compares a port's value by one of a fixed list of operators; a callable can be a condition, too. A
condition on a port without a value is false. Unknown operators, members other than port, op and value, and values that
cannot be compared are refused. Text is never evaluated."""

from _graphs import refused
from memstow_loops import conditions


def met(op, value, *, is_value, **values):
    return conditions.condition_of({"port": "x", "op": op, "value": value})({"x": is_value, **values})


TRUE = [("==", 1, 1), ("==", 1.0, 1), ("!=", "a", "b"), ("<", 2, 1), ("<=", 2, 2), (">", 1, 2), (">=", "a", "b"),
        ("contains", "b", "abc"), ("contains", 2, [1, 2]), ("in", ["a", "b"], "a"), ("in", "abc", "b"),
        ("==", True, True), ("==", [1, 2], [1, 2])]
for op, value, is_value in TRUE:
    assert met(op, value, is_value=is_value) is True, (op, value, is_value)
for op, value, is_value in (("==", 1, 2), ("<", 1, 1), (">", 2, 1), ("contains", "z", "abc"), ("in", ["a"], "b"),
                            ("==", "1", 1)):
    assert met(op, value, is_value=is_value) is False, (op, value, is_value)
assert {op for op, *_ in TRUE} == set(conditions.OPERATORS)
assert conditions.condition_of({"port": "x", "op": "==", "value": 1})({}) is False, "no value yet: not met"
assert conditions.condition_of(None) is None and conditions.condition_of(len) is len
for op, value, is_value in (("<", "a", 1), (">", 1, "a"), ("contains", 1, "abc"), ("in", "abc", 3)):
    refused(lambda: met(op, value, is_value=is_value), "port x", "cannot be decided", op)
refused(lambda: met("==", 1, is_value={"samples": 1}), "port x", "dict")
for op in ("is", "eval", "__import__('os')", "=", "", None, 5, "=="[:1], []):
    refused(lambda: conditions.condition_of({"port": "x", "op": op, "value": 1}), "one of")
for value in (3, 1.5, True):
    refused(lambda: conditions.condition_of({"port": "x", "op": "in", "value": value}), "op in", "list")
for what in ({}, {"port": "x"}, {"port": "x", "op": "=="}, {"port": 1, "op": "==", "value": 1}, "x > 1", 5, [],
             {"port": "x", "op": "==", "value": 1, "more": 1}):
    refused(lambda: conditions.condition_of(what), "condition")
for value in ({}, {"a": 1}, None, [[1]], [None]):
    refused(lambda: conditions.condition_of({"port": "x", "op": "==", "value": value}), "value")
assert conditions.conditions_of(None, 3) == [None] * 3 and conditions.conditions_of([None, len], 2) == [None, len]
assert conditions.conditions_of({"port": "x", "op": "==", "value": 1}, 1)[0]({"x": 1})
for when, count in (([None], 2), ([None] * 3, 2), ({"port": "x", "op": "==", "value": 1}, 2), ([], 1)):
    refused(lambda: conditions.conditions_of(when, count), "when")
