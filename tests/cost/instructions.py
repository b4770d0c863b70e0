#!/usr/bin/env python3
# needs: cc
# timeout: 300
"""Instructions for one malloc and one free in each mode, counted by callgrind: the same on a loud machine and a quiet one.

Each is the difference of a long and a short run, so that starting up does not count. It may not grow by more than 5 % over
tests/cost/budget.json. `RECORD_COST=1 tests/check cost` writes what it counts there."""
import json, os, pathlib, platform, re, shutil, subprocess, tempfile

import support

BUDGET = pathlib.Path(__file__).with_name("budget.json")
SHORT, LONG = 20_000, 60_000
ROOM = 1.05
MODES = {
    "untracked": None,
    "none": ["--stacks=none"],
    "default": [],
    "mimalloc": ["--stacks=none", "--allocator=mimalloc"],
}


def count(program, rounds, options):
    """Instructions of a whole run."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind"
        argv = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, rounds]
        if options is None:
            support.run(*argv)
        else:
            support.track(*argv, options=options, file=pathlib.Path(folder) / "out.mst")
        return int(re.search(r"^(?:summary|totals): (\d+)", out.read_text(), re.M)[1])


def measure(program):
    modes = {m: o for m, o in MODES.items() if m != "mimalloc" or support.features()["mimalloc"]}
    return {mode: round((count(program, LONG, options) - count(program, SHORT, options)) / (LONG - SHORT), 2)
            for mode, options in modes.items()}


def toolchain():
    """What the numbers depend on besides us."""
    compiler = subprocess.run(["cc", "-dumpfullversion"], capture_output=True, text=True).stdout.strip()
    return f"glibc {platform.libc_ver()[1]}, cc {compiler}"


def main():
    if not shutil.which("valgrind"):
        support.skip("needs valgrind")
    numbers = measure(support.compile(pathlib.Path(__file__).with_name("pairs.c"), flags=("-O2",)))
    if os.environ.get("RECORD_COST"):
        BUDGET.write_text(json.dumps({"toolchain": toolchain(), "instructions": numbers}, indent=2) + "\n")
    budget = json.loads(BUDGET.read_text()) if BUDGET.exists() else {"toolchain": "", "instructions": {}}
    for mode, number in numbers.items():
        print(f"{mode:10} {number:8.2f} instructions for malloc + free, recorded {budget['instructions'].get(mode)}")
    if budget["toolchain"] != toolchain():
        support.skip(f"recorded with {budget['toolchain'] or 'nothing'}, here is {toolchain()}")
    more = [m for m, n in numbers.items() if n > ROOM * budget["instructions"].get(m, 0)]
    assert not more, f"more than {ROOM - 1:.0%} over tests/cost/budget.json: {', '.join(more)}"


if __name__ == "__main__":
    main()
