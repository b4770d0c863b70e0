# needs: deb:valgrind
"""With eight times as many owners, but the same number of marks of owners, --perfetto takes less than twice as many
instructions, also for a hostile file. callgrind counts the instructions, so a busy machine gives the same numbers."""
import pathlib, re, subprocess

from _ledger import Ledger
from support import MEMSTOW, features, skip

if features()["sanitize"]:
    skip("callgrind cannot run a command with sanitizers")
MARKS, FEW, MANY = 30000, 400, 3200
S = 10**9


def instructions(owners):
    ledger = Ledger()
    for number in range(owners):
        ledger.owner(4, f"custom {number}", begin_ns=S)
    for number in range(MARKS):
        ledger.owner_mark(S + number, 1 + number % owners, number, number == MARKS - 1)
    ledger.save("x.mst")
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=callgrind", MEMSTOW, "report",
                           "--perfetto", "--top=10000", "x.mst"], capture_output=True, check=True)
    # only the last mark has bytes on devices, so only its owner has this counter
    assert done.stdout.count(b" on CUDA devices") == 1
    assert f"custom {(MARKS - 1) % owners} on CUDA devices".encode() in done.stdout
    return int(re.search(r"^(?:summary|totals): (\d+)", pathlib.Path("callgrind").read_text(), re.M)[1])


few, many = instructions(FEW), instructions(MANY)
print(f"{FEW} owners: {few / 1e6:.0f} million instructions; {MANY}: {many / 1e6:.0f}")
assert many < 2 * few, (few, many)
