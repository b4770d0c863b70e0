"""diff --by=site matches stacks by their frames: not by ids, nor by the addresses of modules."""
import json
from _ledger import Ledger
from support import memstow


def ledger(bias, order, live, **header):
    """A ledger with three stacks, which get their ids in the order of the names in `order`. `live` is
    {name: (bytes, blocks)}. A `bias` other than 0 moves the addresses of the module, and gives other ids to strings and
    frames."""
    made = Ledger(**header)
    made.string("something else first" if bias else "x")
    module = made.module("[program]", bias=bias)
    frames = {name: made.frame(bias + address, module) for name, address in
              sorted({"main": 0x100, "left": 0x200, "right": 0x300}.items(), reverse=bool(bias))}
    python = made.python("load", "/opt/load.py", 7)
    stacks = {"left": lambda: made.node([frames["main"], frames["left"]]),
              "right": lambda: made.node([frames["right"]], made.node([frames["main"]])),
              "load": lambda: made.node([frames["main"], python, frames["left"]])}
    for name in order:
        made.count(made.site(module, stack=stacks[name]()), alloc=live[name])
    return made


ledger(0, ["left", "right", "load"], {"left": (100, 1), "right": (4096, 4), "load": (50, 5)}).save("a.mst")
ledger(0x7f0000000000, ["load", "right", "left"],
       {"load": (50 + 2048, 7), "right": (4096, 4), "left": (100, 1)}).save("b.mst")
shown = memstow("diff", "a.mst", "b.mst", "--by=site").stdout
assert shown.split("\n", 3)[3] == """\
    grew by     blocks   live in B  call stack, innermost first
   +2.0 KiB         +2     2.0 KiB  py load  load.py:7
                                       … 1 more, 1 inner frame
   +2.0 KiB         +2     6.1 KiB  total
""", shown

# The default is by site. It is by module if one of the files has no stacks.
assert memstow("diff", "a.mst", "b.mst").stdout == shown
plain = Ledger()
plain.count(plain.site(plain.module("/lib/x")), alloc=(10, 1))
plain.save("plain.mst")
for pair in (("plain.mst", "a.mst"), ("a.mst", "plain.mst"), ("plain.mst", "plain.mst")):
    assert "\nmodule  " in memstow("diff", *pair).stdout, pair
    assert json.loads(memstow("diff", *pair, "--json").stdout)["by"] == "module"
assert json.loads(memstow("diff", "a.mst", "b.mst", "--json").stdout)["by"] == "site"

# A stack that is gone is shown with the file that had it.
ledger(0, ["left"], {"left": (100, 1)}).save("c.mst")
rows = json.loads(memstow("diff", "b.mst", "c.mst", "--by=site", "--json").stdout)["rows"]
assert [(row["growth_bytes"], [frame["function"] for frame in row["stack"]]) for row in rows] == [
    (-2098, [None, "load", None]), (-4096, [None, None])], rows
assert rows[0]["stack"][1] == {"function": "load", "file": "/opt/load.py", "line": 7, "module": None, "kind": "python"}
assert memstow("diff", "a.mst", "a.mst", "--by=site").stdout.count("\n") == 5
