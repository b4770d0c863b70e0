"""With --fail-over, the exit code is 1 if live memory grew by more than a limit. One line says which limit."""
from _ledger import Ledger
from support import memstow

for name, size, blocks in (("a", 100_000, 100), ("b", 110_000, 150)):
    ledger = Ledger()
    ledger.count(ledger.site(ledger.module("/lib/a")), alloc=(size, blocks))
    ledger.save(name)
for limits, over in (("10000", None), ("9999", "9999"), ("9.76K", "9.76K"), ("9.77KiB", None), ("1MiB", None),
                     ("10%", None), ("9.9%", "9.9%"), ("50x", None), ("49x", "49x"), ("1GiB,49x,1%", "49x"),
                     ("1G,90%,50x", None), ("49X", "49X"), ("0x", "0x"), ("0.5K", "0.5K")):
    done = memstow("diff", "a", "b", f"--fail-over={limits}", status=1 if over else 0)
    message = f"memstow: live memory grew by 9.8 KiB and 50 blocks: over the limit of {over}\n"
    assert done.stderr == (message if over else ""), (limits, done.stderr)
    memstow("diff", "b", "a", f"--fail-over={limits}")
for wrong in ("", ",", "1,", "-1", "x", "%", "1e3", "0x10", "1 M", "inf", "1..2", "5MiBs", "1%%", "1,000", "01", "007x",
              "00.5%", ",".join(["1G"] * 9)):
    memstow("diff", "a", "b", f"--fail-over={wrong}", status=2)

# If it is given twice, both limits hold.
for limits in (("49x", "1G"), ("1G", "49x"), ("1G,90%", "1T,49x")):
    done = memstow("diff", "a", "b", *(f"--fail-over={limit}" for limit in limits), status=1)
    assert done.stderr.endswith("and 50 blocks: over the limit of 49x\n"), done.stderr
memstow("diff", "a", "b", *["--fail-over=1G"] * 9, status=2)

# More blocks with less memory.
for name, size, blocks in (("a", 100 << 20, 100), ("b", 1 << 20, 1000)):
    ledger = Ledger()
    ledger.count(ledger.site(ledger.module("/lib/a")), alloc=(size, blocks))
    ledger.save(name)
assert memstow("diff", "a", "b", "--fail-over=100x", status=1).stderr == (
    "memstow: live memory changed by -99.0 MiB and +900 blocks: over the limit of 100x\n")
assert memstow("diff", "b", "a", "--fail-over=1M", status=1).stderr == (
    "memstow: live memory changed by +99.0 MiB and -900 blocks: over the limit of 1M\n")
