# needs: deb:libdevel-nytprof-perl
"""flamegraph.pl reads the --folded output of report and diff. Each frame has its bytes, and the whole is the sum of the
lines. What grew is red, and what shrank is blue. No name breaks the picture, runs a script, or is taken for a
figure."""
import collections, subprocess

import _hostile
from _flamegraph import Graph, expected
from _ledger import Ledger
from support import MEMSTOW


def folded(*arguments):
    """The lines, and {stack: [amounts]}."""
    text = subprocess.run([MEMSTOW, *arguments, "--folded"], capture_output=True, check=True).stdout
    columns = 2 if arguments[0] == "diff" else 1
    rows = [row.rsplit(" ", columns) for row in text.decode().split("\n")[:-1]]
    return text, {stack: [int(amount) for amount in amounts] for stack, *amounts in rows}


def graph(file, *options):
    """The graph of a report. Its total and its frames must have the bytes that the folded lines have."""
    text, stacks = folded("report", file, *options)
    made = Graph(text)
    sizes = {stack: size for stack, [size] in stacks.items()}
    found = collections.Counter((name, size) for name, size, _ in made.frames)
    assert made.total == sum(sizes.values()) and found == expected(sizes), (made.total, found - expected(sizes),
                                                                            expected(sizes) - found)
    return made


made = Ledger()
lib = made.module("/opt/libx.so")
unet = made.tag(made.owner(1, "UNET", "a.st"))
main = made.node([made.frame(0x10, lib), made.python("<module>", "/srv/app.py", 3)])
for size, name, tag in ((900, "load", unet), (60, "load", 0), (50, "f.<locals>.g", 0), (7, "load", unet)):
    made.count(made.site(lib, tag, stack=made.node([made.python(name, "/srv/app.py", 9), made.frame(0x20, lib)], main)),
               alloc=(size, 1))
made.count(made.site(lib), alloc=(5, 1))
made.save("x.mst")
plain = graph("x.mst")
assert plain.total == 1022 and ("py:(module) (app.py:3)", 1017) in [one[:2] for one in plain.frames], plain.frames
assert ("model:UNET (a.st)", 907) in [one[:2] for one in graph("x.mst", "--by=model").frames]
graph("x.mst", "--python", "--min=100")

# ---- differences: the width of a frame is its bytes in B


def shades(graph):
    """{function: (red, green, blue)}"""
    return {name.split()[0]: tuple(map(int, colour[4:-1].split(","))) for name, _, colour in graph.frames}


after = Ledger()
for size, name in ((300, "grows"), (70, "same"), (40, "shrinks"), (20, "new")):
    after.count(after.site(stack=after.node([after.python(name, "/a.py", 1)])), alloc=(size, 1))
after.save("after.mst")
before = Ledger()
for size, name in ((100, "grows"), (70, "same"), (90, "shrinks"), (10, "gone")):
    before.count(before.site(stack=before.node([before.python(name, "/a.py", 1)])), alloc=(size, 1))
before.save("before.mst")
text, _ = folded("diff", "before.mst", "after.mst")
changed = Graph(text)
assert changed.total == 430, changed.total
colours = shades(changed)
red, green, blue = range(3)
assert colours["py:grows"][red] == colours["py:new"][red] == 255 > colours["py:new"][blue] > colours["py:grows"][blue]
assert colours["py:shrinks"][blue] == 255 > colours["py:shrinks"][red], colours
assert set(colours["py:same"]) == {255} and ("py:gone (a.py:1)", 0) in [one[:2] for one in changed.frames], colours
text, _ = folded("diff", "after.mst", "before.mst") # as docs/formats.md has it: what only the first file has
colours = shades(Graph(text, "--negate"))
assert colours["py:gone"][blue] == 255 > colours["py:gone"][red] and colours["py:grows"][red] == 255, colours

# ---- names

ENDS = "\\'),window.hit=7//" # ends the text of a handler in versions that put names into handlers
odd = Ledger()
for number, path in enumerate(("/opt/tool 17", "/opt/tool 1.5", "/opt/tool 2.", "/opt/a\\'", "/opt/17", "/opt/-")):
    odd.count(odd.site(odd.module(path)), alloc=(100 + number, 1))
odd.count(odd.site(stack=odd.node([odd.python(ENDS, "", 1), odd.python("f 17", "", 1)])), alloc=(1000, 1))
odd.save("odd.mst")
sizes = _hostile.save("hostile.mst")
assert graph("hostile.mst", "--min=0").total == sum(sizes.values())
for file in ("hostile.mst", "odd.mst"):
    for shown in (graph(file, "--min=0"), graph(file, "--min=0", "--by=model")):
        assert shown.scripts == plain.scripts and shown.tags == plain.tags, shown.tags - plain.tags
        for text in [value for value in shown.handlers if value.startswith("s('")]: # of flamegraph.pl before 2017
            assert text.endswith("')") and "'" not in text[3:-2].replace("\\'", "") and "\\\\" not in text, text
for options in ((), ("--by=model",)):
    text, stacks = folded("diff", "x.mst", "odd.mst", *options)
    assert Graph(text).total == sum(now for _, now in stacks.values()) == 1615, stacks
