"""A report reads well in 80 columns."""
from _ledger import MIB, Ledger
from support import memstow

ledger = Ledger(total_peak=8 * MIB, host_peak=8 * MIB, file_mapped=5 * MIB, picture=(8 * MIB, 7 * MIB, 2 * 10**9))
ledger.fact(2, "./program --all")
site = ledger.site(ledger.module("/opt/program"), peak=6 * MIB)
ledger.count(site, alloc=(4 * MIB, 40), free=(MIB, 10))
ledger.count(ledger.site(ledger.module("/usr/lib/a-library-of-a-long-name/libexample.so.1"), peak=MIB),
             alloc=(2 * MIB, 5), free=(MIB, 4))
ledger.count(site, alloc=(MIB, 1), thread=1)
ledger.block(0x100000, 2 * MIB, site)
ledger.mapping(0x700000, MIB, site)
ledger.save("x.mst")

text = memstow("report", "x.mst").stdout.replace("2001-09-09 01:46:40", "WHEN")
lines = [line for line in text.split("\n") if not line.startswith("  started")]
assert all(len(line) <= 80 for line in lines), text
assert "\n".join(lines) == """\
program (pid 1000), exited
  command    ./program --all
  where      4.0 MiB of 5.0 MiB live (80 %) belongs to /opt/program
  next       memstow report --html -o page.html x.mst: all of it in a browser

                       live         blocks         peak    allocated
  host heap         4.0 MiB             31      8.0 MiB      6.0 MiB
  mapped            1.0 MiB              1      1.0 MiB      1.0 MiB
  total             5.0 MiB             32      8.0 MiB      7.0 MiB
  besides: 5.0 MiB of files mapped, 0 B of addresses reserved

The column "at peak" shows the ledger at 7.0 MiB, on its way down from the
peak, which was 1.0 s after the start and 1.0 MiB higher.

By module
                                                 live      blocks      at peak
  /opt/program                                4.0 MiB          31      6.0 MiB
  …/libexample.so.1                           1.0 MiB           1      1.0 MiB

Largest blocks of 64 KiB and more, and mappings (2 of 2)
               size           age  kind       from
            2.0 MiB         1.0 s  block      /opt/program
            1.0 MiB         1.0 s  anonymous  /opt/program

Resident memory was not measured: the process could not look at its own pages.
""", text
