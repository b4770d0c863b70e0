# needs: cc
"""If a symbol file is damaged or hostile, only the names from this file are lost. The report is still written, and the
command does not fail."""
import random
from _stacks import ledger, program
from support import memstow, report

random.seed(4)
path, offsets = program()
good = path.read_bytes()
ledger(path, offsets, identity=b"").save("x.mst")
assert report("x.mst")["sites"][0]["stack"][0]["function"] == "order"

for size in (0, 1, 15, 64, 1000, len(good) // 2, len(good) - 1):
    path.write_bytes(good[:size])
    done = memstow("report", "x.mst", "--json")
    assert done.stderr.count("\n") <= 1, done.stderr

for number in range(120):
    bad = bytearray(good)
    start = 0 if number % 3 == 0 else len(good) // 3
    for _ in range(1 << random.randrange(10)):
        bad[random.randrange(start, len(bad))] = random.randrange(256)
    path.write_bytes(bad)
    done = memstow("report", "x.mst", timeout=90)
    assert "2.9 KiB" in done.stdout and done.stderr.count("\n") <= 1, done.stderr
