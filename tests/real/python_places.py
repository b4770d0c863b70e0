#!/usr/bin/env python3
# timeout: 200
"""A program allocates blocks of two kinds through 1,024 chains of Python lines, in random order. Some of these chains
go through native code. Each block is counted at its own chain, whatever the thread remembers of earlier chains. The
size of a block tells its chain."""
import re

import support
from _pythons import pythons

LEVELS, ROUNDS = 5, 12_000
FIRST, SECOND = 1_000, 4_000 # sizes of the two kinds, without the number of the chain
LEAF = "def level0(chain):\n    held.append(bytes(FIRST + chain)); held.append(bytearray(SECOND + chain))\n"
LEVEL = """\
def level{0}(chain):
    way = chain >> 2 * {1} & 3
    if way == 0:
        {2}
    elif way == 1:
        {2}
    elif way == 2:
        {2}
    else:
        {2}
"""
WAYS = [4, 6, 8, 10] # the lines of a level's four calls, counted from the line before the level


def program():
    """The source of the program, and for each level the number of the line before it."""
    source = f"import os, random\nheld, FIRST, SECOND = [], {FIRST}, {SECOND}\n" + LEAF
    starts = []
    for level in range(1, LEVELS + 1):
        call = f"level{level - 1}(chain)" if level % 2 else f"list(map(level{level - 1}, [chain]))"
        starts.append(source.count("\n"))
        source += LEVEL.format(level, level - 1, call)
    source += f"random.seed(1)\nfor i in range({ROUNDS}):\n    level{LEVELS}(random.randrange({4 ** LEVELS}))\n"
    source += "os._exit(0)\n"
    return source, starts


def lines(chain, starts):
    """The lines of a chain, innermost first."""
    return [("level0", 4)] + [(f"level{i + 1}", starts[i] + WAYS[chain >> 2 * i & 3]) for i in range(LEVELS)]


found = pythons()
if not found:
    support.skip("no Python here whose frames can be read")
source, starts = program()
support.HERE.joinpath("program.py").write_text(source)
for python, version in found.items():
    support.track(python, "-S", "program.py", timeout=100)
    seen = wrong = 0
    for site in support.report("out.mst", "--top=100000")["sites"]:
        size = site["live_bytes"] / site["live_blocks"] if site["live_blocks"] else 0
        frames = [(frame["function"], frame["line"]) for frame in site["stack"]
                  if frame["kind"] == "python" and re.match("level", frame["function"])]
        if not frames or not FIRST < size < 2 * SECOND: # the list that holds them is larger
            continue
        chain = size - FIRST - 33 if size < SECOND else size - SECOND - 1 # the chain's number follows from the size
        if frames == lines(int(chain), starts):
            seen += site["live_blocks"]
        else:
            wrong += site["live_blocks"]
    print(f"{version}: {seen} blocks at their chains, {wrong} elsewhere")
    assert (seen, wrong) == (2 * ROUNDS, 0), version
