"""diff matches by name, never by id, in a stable order."""
import json
from _ledger import Ledger
from support import memstow


def ledger(paths, **header):
    """paths: {path: (bytes, blocks)}, in the order of their ids."""
    made = Ledger(**header)
    for path, live in paths.items():
        made.count(made.site(made.module(path)), alloc=live)
    return made


ledger({"/lib/a": (1000, 10), "/lib/b": (5000, 5), "/lib/same": (64, 1), "/lib/gone": (300, 3)}).save("a.mst")
ledger({"/lib/new2": (100, 1), "/lib/new1": (100, 1), "/lib/same": (64, 1), "/lib/b": (4000, 4), "/lib/a": (3048, 12)},
       pid=1001).save("b.mst")
assert memstow("diff", "a.mst", "b.mst").stdout == """\
A  a.mst (program, pid 1000): 6.2 KiB live
B  b.mst (program, pid 1001): 7.1 KiB live

module                                        grew by       blocks     live in B
/lib/a                                       +2.0 KiB           +2       3.0 KiB
/lib/new1                                      +100 B           +1         100 B
/lib/new2                                      +100 B           +1         100 B
/lib/gone                                      -300 B           -3           0 B
/lib/b                                        -1000 B           -1       3.9 KiB
total                                          +948 B            0       7.1 KiB
"""
document = json.loads(memstow("diff", "a.mst", "b.mst", "--json").stdout)
assert (document["format"], document["growth_bytes"], document["growth_blocks"]) == ("memstow-diff", 948, 0)
assert [row["name"] for row in document["rows"]] == ["/lib/a", "/lib/new1", "/lib/new2", "/lib/gone", "/lib/b"]
