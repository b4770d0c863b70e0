#!/usr/bin/env python3
# needs: cc
# timeout: 400
"""Counts the instructions of calls while memstow serves other blocks. callgrind counts them over a test double of the
driver, so the figures say nothing about time, or about a GPU. These calls are measured:

- while there are up to 3,000 served blocks, or as many blocks that were freed in a stream that makes no progress: a
  pair of cuMemAllocAsync and cuMemFreeAsync (for a served block, and for a block that is too small to be served), a
  query of an address, and a query of the free memory;
- a pair of cuMemAllocAsync and cuMemFreeAsync while moves may pin memory (MEMSTOW_CUDA_PINNED), because each served
  block may then ask for pinned memory;
- a query of an address, from 1 place and from 5,000 places of the program;
- a move that looks at 300 blocks, and a move that looks at 3,000 blocks.

Each figure is the difference of a long and a short run. The other blocks and places may add no more instructions to a
call than BESIDE allows, with any compiler. No figure may grow by more than 5 % over tests/cost/served_budget.json,
which `RECORD_COST=1 tests/check cost/served` writes."""
import os, pathlib

import instructions, support

BUDGET = pathlib.Path(__file__).with_name("served_budget.json")
SHORT, LONG = 500, 2_500
QUERIES = 100, 500 # rounds of a query that looks at each freed block
BESIDE = { # (call, beside what): (the least and the largest number of these, the instructions that the largest may add)
    ("pair", "live"): ((0, 3_000), 2_000),
    ("pair", "freed"): ((100, 3_000), 1_000),
    ("small", "live"): ((0, 3_000), 1_300),
    ("small", "freed"): ((100, 3_000), 1_000),
    ("attribute", "live"): ((0, 3_000), 700),
    ("info", "live"): ((1, 3_000), 100),
    # A query of the free memory looks at each freed block, for some 60 instructions, because a block counts as free as
    # soon as its stream has reached the call that frees it. An allocation looks at only a few freed blocks.
    ("info", "freed"): ((1, 3_000), 200_000),
    ("places", "live"): ((1, 5_000), 500),
}
TOO_LITTLE = "1M" # less than is pinned at a time: each block asks whether to pin, and no other thread pins meanwhile
MOVES, MOVED = (2, 12), (300, 3_000) # rounds, blocks
LONGER = 1.5 # a move of 10 times as many blocks may take 15 times as many instructions, but not more
HERE = pathlib.Path(__file__).parent


def build():
    """Builds the driver that only answers, and the program."""
    library = support.HERE / "libcuda.so.1"
    flags = ("-O2", "-fPIC", "-shared", "-DDRIVER", "-Wl,-soname,libcuda.so.1")
    support.run("cc", *flags, "-o", library, HERE / "served.c")
    os.environ["LD_LIBRARY_PATH"] = str(support.HERE)
    os.environ["MEMSTOW_CUDA_MOVES"] = "2M"
    return support.compile(HERE / "served.c", flags=("-O2", "-Wl,--no-as-needed", str(library)))


def name_of(what, state, number):
    if what == "places":
        return f"attribute from {number}"
    return f"{what} beside {number}" + (" freed" if state == "freed" else "")


def each(few, many, *command):
    """Instructions of one round. Two functions are not counted: the one that adds points to the curve over time,
    because the number of points depends on the clock, and the one that reads the process's mappings, because the number
    of mappings depends on the threads of that moment."""
    return instructions.each(command, few, many, ["--stacks=none"], without=["history_add_device", "stow_areas"])


def measure(program):
    numbers = {}
    for (what, state), (beside, _) in BESIDE.items():
        rounds = QUERIES if (what, state) == ("info", "freed") else (SHORT, LONG)
        for number in beside:
            numbers[name_of(what, state, number)] = round(each(*rounds, program, what, state, number), 2)
    os.environ["MEMSTOW_CUDA_PINNED"] = TOO_LITTLE
    numbers["pair, may pin"] = round(each(SHORT, LONG, program, "pair", "live", 0), 2)
    del os.environ["MEMSTOW_CUDA_PINNED"]
    for blocks in MOVED:
        numbers[f"move of {blocks}, a block"] = round(each(*MOVES, program, "move", "live", blocks) / blocks, 2)
    return numbers


def main():
    instructions.need_valgrind()
    numbers = measure(build())
    for (what, state), (beside, most) in BESIDE.items():
        few, many = (name_of(what, state, beside[i]) for i in (0, -1))
        more = numbers[many] - numbers[few]
        assert more <= most, f"{many}: {more:.0f} instructions more than {few}, not {most} at most"
    few, many = (numbers[f"move of {blocks}, a block"] for blocks in MOVED)
    assert many <= LONGER * few, f"a block takes {few:.0f} instructions in a small move, {many:.0f} in a large one"
    instructions.hold(numbers, BUDGET, "instructions")


main()
