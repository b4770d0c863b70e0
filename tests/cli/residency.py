"""The report splits RSS into parts, by what the ledger knows of each region. If much of RSS is freed memory that the
allocator keeps, the report says that this is no leak."""
from _ledger import EXECED, EXITED, MIB, RESIDENCY, RUNNING, Ledger
from support import memstow, report

ledger = Ledger(flags=RESIDENCY, header_overhead=16)
site = ledger.site(ledger.module("/opt/program"))
ledger.count(site, alloc=(110 * MIB, 2001), free=(100 * MIB, 1000))
ledger.block(0x7f0000010010, 8 * MIB, site, resident=8 * MIB)
ledger.mapping(0x7e0000000000, 4 * MIB, site, resident=3 * MIB)
ledger.region(0x400000, MIB, MIB // 2, "/opt/program", anonymous=MIB // 8)  # a part of .data was written to
ledger.region(0x400000 + MIB, MIB, MIB // 4)  # its .bss
ledger.region(0x1000000, 100 * MIB, 60 * MIB, "[heap]")
ledger.region(0x7e0000000000, 4 * MIB, 3 * MIB)
ledger.region(0x7f0000010000, 9 * MIB, 8 * MIB)  # a chunk that glibc mapped
ledger.region(0x7f8000001000, MIB, MIB // 8)  # unknown use
ledger.region(0x7fff00000000, MIB, MIB, "[stack]")
part = report(ledger.save("x.mst"))["residency"]
HEADERS, OVERHEAD = 16 * 1001, 1000 * (2128 - 2097 - 16)  # small blocks have a mean size of 2097 bytes
assert part["rss_bytes"] == 72 * MIB + MIB // 2 + MIB // 4 + MIB // 8
assert part["live_bytes"] == 10 * MIB and part["memstow_bytes"] == part["memstow_header_bytes"] == HEADERS, part
assert part["overhead_bytes"] == OVERHEAD, part
assert part["retained_bytes"] == 58 * MIB - HEADERS - OVERHEAD and part["retained_is_estimate"] is True
assert part["mapped_anonymous_bytes"] == 3 * MIB and part["stack_bytes"] == MIB
assert part["program_data_bytes"] == MIB // 4 + MIB // 8 and part["mapped_file_bytes"] == MIB // 2 - MIB // 8
assert part["files"] == [{"file": "/opt/program", "resident_bytes": MIB // 2 - MIB // 8}]
assert part["rest_bytes"] == MIB // 8
assert part["advice"].startswith("glibc keeps 58.0 MiB of freed memory: this is not a leak."), part["advice"]
assert "glibc keeps 58.0 MiB of freed memory: this is not a leak." in memstow("report", "x.mst").stdout

# Stowed memory is in a file that never had a name, or whose name was removed. The part that has been read since it was
# stowed is resident.
for name in ("#1234", "memstow-stow.77.1"):
    ledger = Ledger(flags=RESIDENCY)
    ledger.region(0x7d0000000000, MIB, MIB // 16, f"/var/tmp/{name} (deleted)", anonymous=0)
    part = report(ledger.save("stowed.mst"))["residency"]
    assert part["stowed_resident_bytes"] == MIB // 16 and not part["files"], (name, part)

# Only 1 MiB was freed, so only 1 MiB is reported as freed, whatever the estimate of the overhead is.
ledger = Ledger(flags=RESIDENCY, header_overhead=16)
ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(48 * MIB, 3 * MIB), free=(MIB, MIB // 16))
ledger.region(0x1000000, 200 * MIB, 188 * MIB, "[heap]")
part = report(ledger.save("small.mst"))["residency"]
blocks = 3 * MIB - MIB // 16
assert (part["live_bytes"], part["memstow_header_bytes"]) == (47 * MIB, 16 * blocks)
assert part["retained_bytes"] == MIB and part["advice"] is None, part
assert part["overhead_bytes"] == 188 * MIB - 48 * MIB - 16 * blocks, part
text = memstow("report", "small.mst").stdout
for line in ("allocator overhead of live blocks (estimate)", "freed, kept by the allocator (estimate)",
             "headers of live blocks"):
    assert line in text, (line, text)

# If resident memory was not measured, the report says why.
for state, why in ((RUNNING, "ended unseen, by a raw exit or a signal"),
                   (EXECED, "went on as another program (exec)"), (EXITED, "could not look at its own pages")):
    ledger = Ledger(state=state)
    text = memstow("report", ledger.save("none.mst")).stdout
    assert f" Resident memory was not measured: the process {why}. " in " ".join(["", *text.split(), ""]), text
    assert max(map(len, text.split("\n"))) <= 80, text
