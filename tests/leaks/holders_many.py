# timeout: 300
"""Holders of many growing lines are looked for in several searches, because one search takes at most 64 call stacks. A
program that looks for holders unasked (as ComfyUI with the node pack does) makes one search: the command says that
there are more call stacks, and the next command asks for these. One line of Python allocates at a dozen instructions.
memstow leaks shows this line as one call stack, although it has a dozen numbers in the ledger, one for each
instruction. Only the memory of the last instruction stays. Its holder is found nevertheless."""
import pathlib

import support
from _leaks import brief, leaks, waiting

RUNS, LINES, CALLS, SIZE = 14, 70, 12, 40_000

pathlib.Path("keep_line.py").write_text("".join(
    f"kept_{line} = []\ndef keep_{line}():\n    kept_{line}.append(bytearray({SIZE + 64 * line}))\n"
    for line in range(LINES)))
pathlib.Path("keep_last.py").write_text(f"""
kept = []
def make():
    return bytearray({4 * SIZE})
def keep(): # make() is called at {CALLS} instructions of one line, and the last one's memory stays
    {"make(); " * (CALLS - 1)}kept.append(make())
""")
SOURCE = f"""
import keep_last, keep_line, memstow
node = memstow.owner("Maker", "node", "node 1", keys=(1, 1))
for run in range({RUNS}):
    with memstow.run(f"run {{run}}"), memstow.scope(node):
        keep_last.keep()
        for line in range({LINES}):
            getattr(keep_line, f"keep_{{line}}")()
"""


def look(program, *options):
    done = support.memstow("leaks", program.pid(), *options, status=1)
    document = leaks(program.pid(), "--timeout=0", status=1)
    assert document["found"] == LINES + 1, (document["found"], brief(document))
    held = [leak["held_by"] for leak in document["leaks"]]
    print(options, held.count("keep_line"), held.count("keep_last"), done.stderr)
    return done.stderr, held.count("keep_line") + held.count("keep_last"), held[0]


def look_often(program, *options):
    """Looks again as long as there was no time for all call stacks of a search, as on a loaded machine."""
    for _attempt in range(5):
        said, held, first = look(program, *options)
        if "no time for all" not in said:
            break
    return said, held, first


program = waiting(SOURCE)
assert look_often(program, "--holders") == ("", LINES + 1, "keep_last")
program.end()

# ---- without --holders: the first search takes the largest call stacks, and the next one the rest; a long request
# arrives whole

program = waiting(SOURCE + """
def answer(request):
    is_part = request.text.startswith("more")
    memstow.answer(request, *(-5, "a part of a request") if is_part else memstow.look(request))
memstow.on_look(answer)
""", file="looks.mst")
said, held, first = look(program)
assert said == f"memstow: process {program.pid()}: 64 of 71 call stacks: ask again, or with --holders\n", said
assert (held, first) == (64, "keep_last"), (held, first)
assert look_often(program) == ("", LINES + 1, "keep_last")
program.end()

# ---- the second search finds nothing more: a line says so, and what the first one found is shown

program = waiting(SOURCE + """
kinds = []
def answer(request):
    kinds.append(request.kind)
    memstow.answer(request, *(memstow.look(request) if kinds.count("holders") < 2 else (0, "")))
memstow.on_look(answer)
""", file="ends.mst")
said, held, first = look(program, "--holders")
assert said == f"memstow: process {program.pid()}: 64 of 71 call stacks: there was no time for all\n", said
assert (held, first) == (64, "keep_last"), (held, first)
program.end()
