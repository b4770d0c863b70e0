#!/usr/bin/env python3
# needs: cc
# timeout: 300
"""Instructions of a pair of cuMemAllocAsync and cuMemFreeAsync that memstow serves, and of a query of an address,
beside 0, 100 and 3,000 served blocks; and of a move that looks at 300 and at 3,000 blocks. callgrind counts them over a
driver whose functions only answer (a test double). They say nothing about time, or about a GPU.

Each figure is the difference of a long and a short run. Blocks beside it may add no more than MORE, whatever the
compiler. No figure may grow by more than 5 % over tests/cost/served_budget.json, which
`RECORD_COST=1 tests/check cost/served` writes."""
import os, pathlib

import instructions, support

BUDGET = pathlib.Path(__file__).with_name("served_budget.json")
SHORT, LONG = 500, 2_500
BLOCKS = (0, 100, 3_000)
MORE = {"pair": 2_000, "attribute": 700}
MOVES, MOVED = (2, 6), (300, 3_000) # rounds, blocks
LONGER = 1.5 # a move of ten times as many blocks may take this often ten times as many instructions
HERE = pathlib.Path(__file__).parent


def build():
    """Builds the driver that only answers, and the program."""
    library = support.HERE / "libcuda.so.1"
    flags = ("-O2", "-fPIC", "-shared", "-DDRIVER", "-Wl,-soname,libcuda.so.1")
    support.run("cc", *flags, "-o", library, HERE / "served.c")
    os.environ["LD_LIBRARY_PATH"] = str(support.HERE)
    os.environ["MEMSTOW_CUDA_MOVES"] = "2M"
    return support.compile(HERE / "served.c", flags=("-O2", "-Wl,--no-as-needed", str(library)))


def measure(program):
    numbers = {}
    for what in MORE:
        for blocks in BLOCKS:
            command = [program, what, str(blocks)]
            counts = [instructions.count(command, rounds, ["--stacks=none"]) for rounds in (SHORT, LONG)]
            numbers[f"{what} beside {blocks}"] = round((counts[1] - counts[0]) / (LONG - SHORT), 2)
    for blocks in MOVED:
        counts = [instructions.count([program, "move", str(blocks)], rounds, ["--stacks=none"]) for rounds in MOVES]
        numbers[f"move of {blocks}, a block"] = round((counts[1] - counts[0]) / (MOVES[1] - MOVES[0]) / blocks, 2)
    return numbers


def main():
    instructions.need_valgrind()
    numbers = measure(build())
    for what, most in MORE.items():
        more = numbers[f"{what} beside 3000"] - numbers[f"{what} beside 0"]
        assert more <= most, f"{what}: 3,000 served blocks add {more:.0f} instructions, not {most} at most"
    few, many = (numbers[f"move of {blocks}, a block"] for blocks in MOVED)
    assert many <= LONGER * few, f"a block takes {few:.0f} instructions in a small move, {many:.0f} in a large one"
    instructions.hold(numbers, BUDGET, "instructions")


main()
