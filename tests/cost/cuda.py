#!/usr/bin/env python3
# needs: cc
# timeout: 300
"""The instructions that the hooks add to a pair of cudaMallocAsync and cudaFreeAsync. callgrind counts them over a
test double of the CUDA runtime, whose functions only count addresses up. So the figures count memstow's own
instructions. They say nothing about time, or about a GPU.

Each figure is the difference of a long and a short run. It may not grow by more than 5 % over
tests/cost/cuda_budget.json, which `RECORD_COST=1 tests/check cost/cuda` writes."""
import os, pathlib

import instructions, support

BUDGET = pathlib.Path(__file__).with_name("cuda_budget.json")
SHORT, LONG = 2_000, 10_000
MODES = {"untracked": None, "none": ["--stacks=none"], "default": []}
HERE = pathlib.Path(__file__).parent


def build():
    """Builds the runtime that only answers, and the program."""
    library = support.HERE / "libcudart.so.13"
    support.run("cc", "-O2", "-fPIC", "-shared", "-DEMPTY_RUNTIME", "-o", library, HERE.parent / "bench/cuda_pair.c")
    os.environ["LD_LIBRARY_PATH"] = str(support.HERE)
    return support.compile(HERE / "cuda_pairs.c", flags=("-O2", "-Wl,--no-as-needed", str(library)))


def measure(program):
    numbers = {}
    for mode, options in MODES.items():
        numbers[mode] = round(instructions.each([program], SHORT, LONG, options), 2)
    return {mode: round(number - numbers["untracked"], 2) for mode, number in numbers.items() if mode != "untracked"}


def main():
    instructions.need_valgrind()
    numbers = measure(build())
    instructions.hold(numbers, BUDGET, "instructions more for a pair")


main()
