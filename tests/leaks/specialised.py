# timeout: 300
"""The native part of a call stack changes below one line of Python, as when CPython specialises a call. A leak of such
a line is found after 10 runs as well as after 24, and all of its memory is counted. A full cache of such a line is no
leak, and leaves no doubt. If memory grew in too few runs, and nothing else is found, the verdict is "cannot tell"."""
import re

import support
from _leaks import brief, functions, leaks, waiting

SIZE, CHANGE = 40_000, 6

SOURCE = f"""
import functools, zlib, memstow
kept, packed = [], zlib.compress(os.urandom({SIZE}))
ways = functools.partial(bytes, {SIZE}), functools.partial(bytearray, {SIZE})
def changed(run): # two call stacks of C below one line
    return ways[run >= {CHANGE}]()
def specialised(run):
    return zlib.decompress(packed)
def leak(run, make):
    kept.append(make(run))
def cache(run, make, most=7):
    kept.append(make(run))
    del kept[:-most]
def large_cache(run, make):
    cache(run, make, 20)
def uneven(run, make):
    if run in (2, 4, 5, 7):
        kept.append(make(run))
work, make = globals()[sys.argv[1]], globals()[sys.argv[2]]
for run in range(int(sys.argv[3])):
    with memstow.run(f"run {{run}}"):
        work(run, make)
"""


def look(work, make, runs, status):
    program = waiting(SOURCE, work, make, str(runs), file=f"{work}.{make}.{runs}.mst")
    document = leaks(program.pid(), status=status)
    text = support.memstow("leaks", program.pid(), status=status).stdout
    program.end()
    return document, text


def check_leak(make, runs):
    document, text = look("leak", make, runs, 1)
    [one] = document["leaks"]
    assert make in functions(one["stack"])[:2], (make, runs, brief(document))
    assert 0.9 * SIZE < one["bytes_per_run"] < 1.2 * SIZE, (make, runs, one)
    return one, text


for make in ("changed", "specialised"):
    for runs in (10, 13, 24):
        one, text = check_leak(make, runs)
        assert one["live_bytes"] >= runs * SIZE and one["oldest_run"] == "run 0", (make, runs, one)
        assert sum(change for _run, change in one["curve"]) >= runs * SIZE, one["curve"]
        assert "caches that are full" not in text and "uneven" not in text, text # nothing is counted twice
    for work, runs in (("cache", 11), ("cache", 16), ("large_cache", 26)):
        document, text = look(work, make, runs, 0)
        assert "No leak found" in text and not document["leaks"], text

document, text = look("uneven", "specialised", 10, 5)
assert document["verdict"] == "cannot_tell" and not document["found"], document
assert re.fullmatch(r".* KiB may leak: it grew in too few runs, or too unevenly", document["why"]), document["why"]
assert document["advice"] == "let more runs end, and look again", document["advice"]
assert f"Cannot tell: {document['why']}." in text and "No leak found" not in text, text
print("leaks of lines whose call stacks change are found, and nothing else")
