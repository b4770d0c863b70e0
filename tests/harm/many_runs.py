#!/usr/bin/env python3
# needs: cc
"""Hundreds of runs on two threads. Each run leaves blocks that live for some time, at call stacks that are new each
time. Stacks without live blocks make room for new stacks, and the figures of each owner are exact. Many runs take no
more memory than a few runs, whether memory is short or not."""
import json, pathlib

import support
from support import memstow

program = support.compile(pathlib.Path(__file__).with_name("runs.c"),
                          flags=("-O1", "-g", "-pthread", "-fno-optimize-sibling-calls"))


def measured(runs, *options, memory="4M", arguments=(2,)):
    ledger = support.HERE / f"{runs}.mst"
    said = memstow("run", "--quiet", "-o", ledger, f"--stack-memory={memory}", *options, "--", program, runs,
                   *arguments).stdout
    expected = {line.split()[0]: int(line.split()[1]) for line in said.splitlines()}
    report = json.loads(memstow("report", "--json", "--top=1", ledger).stdout)
    owners = {owner["name"]: owner["live_bytes"] for owner in report["owners"] if owner["kind"] != "run"}
    assert {name: owners[name] for name in expected} == expected, (expected, owners)
    runs_live = sum(owner["live_bytes"] for owner in report["owners"] if owner["kind"] == "run")
    assert runs_live == sum(expected[name] for name in expected if name.startswith("model")), (runs_live, expected)
    assert report["lost"]["tags"] == 0, report["lost"]
    return report, ledger.stat().st_size


few, size_of_few = measured(40)
many, size_of_many = measured(800)
assert many["lost"]["folded"] > 100_000, many["lost"]
assert size_of_many < size_of_few + (4 << 20), (size_of_few, size_of_many)
_some, size_of_some = measured(120, memory="64M")
many, size_of_many = measured(800, memory="64M")
assert many["lost"]["folded"] > 100_000 and many["lost"]["stacks"] == 0, many["lost"]
assert size_of_many < size_of_some + (8 << 20), (size_of_some, size_of_many) # --stack-memory is 64 MB


def own_bytes(runs):
    """memstow's own memory after this many short runs: tables and ledger, without the headers of blocks."""
    report, _size = measured(runs, arguments=(1, 1))
    assert report["lost"]["stacks"] == 0, report["lost"]
    return report["residency"]["memstow_bytes"] - report["residency"]["memstow_header_bytes"]


# After a run, its owner and its tags stay: one tag of 16 bytes for each pair of node and model. In this program a run
# has five tags, and its owner and tags take some 270 bytes together. If counts of a finished run have no live blocks,
# they do not stay, but are added to the counts of other old runs.
FEW, MANY, EACH_RUN = 20_000, 80_000, 340
grown = own_bytes(MANY) - own_bytes(FEW)
assert grown < (MANY - FEW) * EACH_RUN, f"{grown / (MANY - FEW)} bytes for each run"
measured(40, "--stacks=none")
measured(40, "--stacks=sample:4096")
