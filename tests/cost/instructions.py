#!/usr/bin/env python3
# needs: cc deb:libjemalloc2
# timeout: 300
"""Counts the instructions of one malloc and one free in each mode, and with three kinds of call stacks: stacks found in
the leaf cache, stacks joined to the last stack, and new stacks. Also counts the instructions of entering and leaving a
scope, and of the calls that redis makes over jemalloc: malloc, usable size, usable size again, free. callgrind counts,
so a busy machine gives the same numbers.

The figures include what the redundancy of a block's header costs: a seal, which shows overwritten headers, and a note
in freed blocks. When the seal and the note were added (on 23 November 2026, with the toolchain of budget.json), a pair
took 3.3 % more instructions in the mode "none", 4.1 % in "default" and 4.6 % in "mimalloc" (docs/misuse.md has the
numbers before and after).

Each figure is the difference of a long and a short run, so that the start does not count. It may not grow by more than
5 % over tests/cost/budget.json. `RECORD_COST=1 tests/check cost` writes that file. The leaf cache adapts to the stacks
that it sees, so joined stacks take one of two numbers, 12 % apart: record the larger one."""
import json, os, pathlib, platform, re, shutil, subprocess, tempfile

import support

BUDGET = pathlib.Path(__file__).with_name("budget.json")
SHORT, LONG = 24_000, 56_000 # no table of call stacks grows near either of them
ROOM = 1.05
MODES = { # program, and options of `memstow run`
    "untracked": (["pairs"], None),
    "none": (["pairs"], ["--stacks=none"]),
    "default": (["pairs"], []),
    "sample": (["pairs"], ["--stacks=sample"]),
    "mimalloc": (["pairs"], ["--stacks=none", "--allocator=mimalloc"]),
    "stacks untracked": (["stacks", "leaf"], None),
    "stacks leaf": (["stacks", "leaf"], []),
    "stacks join": (["stacks", "join"], []),
    "stacks new": (["stacks", "new"], []),
    "scope": (["scopes"], []),
    "jemalloc untracked": (["usable"], None),
    "jemalloc none": (["usable"], ["--stacks=none"]),
    "jemalloc sample": (["usable"], ["--stacks=sample"]),
    "jemalloc default": (["usable"], []),
}
FLAGS = ("-O2", "-fno-optimize-sibling-calls")
PROGRAMS = {"pairs": (), "stacks": (), "scopes": (), "usable": ("-Wl,--no-as-needed", "-l:libjemalloc.so.2")}


def count(command, rounds, options, without=()):
    """Instructions of a whole run, without those of the functions `without` and of what these call."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind"
        # --collect-atstart=yes must be last, because a --toggle-collect after it would turn it off.
        toggle = [f"--toggle-collect={one}" for one in without] + ["--collect-atstart=yes"] * bool(without)
        argv = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *toggle, *command, rounds]
        if options is None:
            support.run(*argv)
        else:
            support.track(*argv, options=options, file=pathlib.Path(folder) / "out.mst")
        return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.M)[1])


def each(command, few, many, options, without=()):
    """Instructions of one round, from the difference between a run of `many` rounds and a run of `few`, so that the
    start does not count."""
    counts = [count(command, rounds, options, without) for rounds in (few, many)]
    return (counts[1] - counts[0]) / (many - few)


def measure():
    modes = {m: how for m, how in MODES.items() if m != "mimalloc" or support.features()["mimalloc"]}
    here = pathlib.Path(__file__).parent
    programs = {name: support.compile(here / f"{name}.c", flags=(*FLAGS, *more)) for name, more in PROGRAMS.items()}
    numbers = {}
    for mode, ((name, *arguments), options) in modes.items():
        numbers[mode] = round(each([programs[name], *arguments], SHORT, LONG, options), 2)
    return numbers


def toolchain():
    """The versions of other software that the numbers depend on."""
    compiler = subprocess.run(["cc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return f"glibc {platform.libc_ver()[1]}, cc {compiler}"


def need_valgrind():
    if not shutil.which("valgrind"):
        support.skip("needs valgrind")


def hold(numbers, path, words):
    """Compares figures with the file of budgets, and prints them; `words` says what a figure is. With RECORD_COST it
    first writes the file anew. Skips the test if the file is of another toolchain."""
    assert min(numbers.values()) > 0, f"nothing was counted: {numbers}"
    if os.environ.get("RECORD_COST"):
        path.write_text(json.dumps({"toolchain": toolchain(), "instructions": numbers}, indent=2) + "\n")
    budget = json.loads(path.read_text()) if path.exists() else {"toolchain": "", "instructions": {}}
    for case, number in numbers.items():
        print(f"{case:22} {number:10.2f} {words}, recorded {budget['instructions'].get(case)}")
    if budget["toolchain"] != toolchain():
        support.skip(f"recorded with {budget['toolchain'] or 'nothing'}, here is {toolchain()}")
    more = [case for case, number in numbers.items() if number > ROOM * budget["instructions"].get(case, 0)]
    assert not more, f"more than {ROOM - 1:.0%} over tests/cost/{path.name}: {', '.join(more)}"


def main():
    need_valgrind()
    hold(measure(), BUDGET, "instructions for a pair")


if __name__ == "__main__":
    main()
