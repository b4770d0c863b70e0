#!/usr/bin/env python3
# tests/simcuda/README.md names tests for each trap: these tests and their cases exist.
import re

import runner, support

TESTS = support.ROOT / "tests"
text = (TESTS / "simcuda/README.md").read_text()
there = {test.name for test in runner.discover()}
rows = [line for line in text.split("\n") if line.startswith("| ") and not line.startswith("| trap")
        and not line.startswith("| what")]
assert len(rows) > 30
for row in rows:
    named = re.findall(r"`([a-z]+/[a-z0-9_]+)(?::([a-z0-9_]+))?`", row.split("|")[2])
    assert named, f"no test: {row}"
    for name, case in named:
        assert name in there, f"{name} is not there: {row}"
        room, behaviour = name.split("/")
        sources = [p for p in (TESTS / room / f"{behaviour}.c", TESTS / room / f"_{behaviour}.c") if p.exists()]
        pattern = rf'\(simcuda_\w+, {case}\b|"{case}"'
        assert not case or any(re.search(pattern, p.read_text()) for p in sources), f"{name} has no case {case}: {row}"
