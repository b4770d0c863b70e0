"""A sparse file can claim a table of many gigabytes and take a few kilobytes of a disk. Such a table is refused with a
message."""
import pathlib, struct

import support
from _ledger import COUNTERS, LARGE, MAPPING, simple

GIB = 1 << 30
plain = simple().bytes()
for kind, record_size, count in ((LARGE, 40, 0), (MAPPING, 64, 0), (COUNTERS, 1032, 4 * GIB // 1032)):
    path = pathlib.Path(f"{kind}.mst")
    section = struct.pack("<IHHQQQ", kind, 1, record_size, 32 + 4 * GIB, count, 0)
    size = len(plain) + 32 + 4 * GIB
    path.write_bytes(plain[:24] + struct.pack("<Q", size) + plain[32:] + section)
    with path.open("r+b") as file:
        file.truncate(size)
    said = support.memstow("report", path, status=3).stderr
    assert "damaged" in said and "a table of more than 2 GiB" in said, said
