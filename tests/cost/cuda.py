#!/usr/bin/env python3
# needs: cc
# timeout: 300
"""The instructions that the hooks add to a pair of cudaMallocAsync and cudaFreeAsync. callgrind counts them over a
runtime whose functions only answer (a test double). They are memstow's own instructions; the figure says nothing about
time, or about a GPU.

Each figure is the difference of a long and a short run. It may not grow by more than 5 % over
tests/cost/cuda_budget.json, which `RECORD_COST=1 tests/check cost/cuda` writes."""
import json, os, pathlib, shutil

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
        counts = [instructions.count([program], rounds, options) for rounds in (SHORT, LONG)]
        numbers[mode] = round((counts[1] - counts[0]) / (LONG - SHORT), 2)
    return {mode: round(number - numbers["untracked"], 2) for mode, number in numbers.items() if mode != "untracked"}


def main():
    if not shutil.which("valgrind"):
        support.skip("needs valgrind")
    numbers = measure(build())
    if os.environ.get("RECORD_COST"):
        BUDGET.write_text(json.dumps({"toolchain": instructions.toolchain(), "instructions": numbers}, indent=2) + "\n")
    budget = json.loads(BUDGET.read_text()) if BUDGET.exists() else {"toolchain": "", "instructions": {}}
    for mode, number in numbers.items():
        print(f"{mode:10} adds {number:8.2f} instructions to a pair, recorded {budget['instructions'].get(mode)}")
        assert number > 0, "the hooks have not run"
    if budget["toolchain"] != instructions.toolchain():
        support.skip(f"recorded with {budget['toolchain'] or 'nothing'}, here is {instructions.toolchain()}")
    more = [m for m, n in numbers.items() if n > instructions.ROOM * budget["instructions"].get(m, 0)]
    assert not more, f"more than 5 % over tests/cost/cuda_budget.json: {', '.join(more)}"


main()
