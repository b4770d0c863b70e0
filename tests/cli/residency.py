"""RSS is split by what the ledger knows of each region, and said to be no leak when the allocator keeps it."""
from _ledger import MIB, RESIDENCY, Ledger
from support import memstow, report

ledger = Ledger(flags=RESIDENCY, header_overhead=16)
site = ledger.site(ledger.module("/opt/program"))
ledger.count(site, alloc=(10 * MIB, 1000), free=(0, 0))
ledger.block(0x7f0000010010, 8 * MIB, site, resident=8 * MIB)
ledger.mapping(0x7e0000000000, 4 * MIB, site, resident=3 * MIB)
ledger.region(0x400000, MIB, MIB // 2, "/opt/program")
ledger.region(0x400000 + MIB, MIB, MIB // 4)  # its .bss
ledger.region(0x1000000, 100 * MIB, 60 * MIB, "[heap]")
ledger.region(0x7e0000000000, 4 * MIB, 3 * MIB)
ledger.region(0x7f0000010000, 9 * MIB, 8 * MIB)  # a chunk of its own
ledger.region(0x7f8000001000, MIB, MIB // 8)  # nobody knows
ledger.region(0x7fff00000000, MIB, MIB, "[stack]")
part = report(ledger.save("x.mst"))["residency"]
assert part["rss_bytes"] == 72 * MIB + MIB // 2 + MIB // 4 + MIB // 8
assert part["live_bytes"] == 10 * MIB and part["memstow_bytes"] == 16000
assert part["retained_bytes"] == 58 * MIB - 16000 and part["retained_is_estimate"] is True
assert part["mapped_anonymous_bytes"] == 3 * MIB and part["stack_bytes"] == MIB
assert part["mapped_file_bytes"] == 3 * MIB // 4
assert part["files"] == [{"file": "/opt/program", "resident_bytes": 3 * MIB // 4}]
assert part["rest_bytes"] == MIB // 8
assert part["advice"].startswith("glibc keeps 58.0 MiB of freed memory: this is not a leak."), part["advice"]
assert "glibc keeps 58.0 MiB of freed memory: this is not a leak." in memstow("report", "x.mst").stdout
