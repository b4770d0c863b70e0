"""--by chooses the rows, --top their number."""
import re
from _ledger import Ledger
from support import memstow

ledger = Ledger()
module = ledger.module("/opt/program")
for name, size in (("unet", 4096), ("vae", 2048)):
    tag = ledger.tag(model=ledger.owner(1, name), node=ledger.owner(2, name + " loader"))
    ledger.count(ledger.site(module, tag), alloc=(size, 1), thread=ledger.thread(name + " thread"))
ledger.count(ledger.site(module), alloc=(1024, 1))
ledger.save("x.mst")


def rows(*options):
    text = memstow("report", "x.mst", *options).stdout
    rows = text[text.index("\nBy "):text.index("\nResident ")].split("\n")[3:]
    return [line[2:52].strip() if line.startswith("  …") else re.split("  +", line[2:])[0] for line in rows if line]


assert rows() == ["unet", "vae", "untagged"], rows()
assert rows("--by=node") == ["unet loader", "vae loader", "untagged"]
assert rows("--by=run") == ["untagged"]
assert rows("--by=module") == ["/opt/program"]
assert rows("--by=site") == ["unet unet loader /opt/program", "vae vae loader /opt/program", "/opt/program"]
assert rows("--by=thread") == ["unet thread", "vae thread", "program"], rows("--by=thread")
assert rows("--top=1") == ["unet", "… and 2 more (--top=N shows N)"]

# Empty rows are counted, and listed only if all rows are empty.
ledger.count(ledger.site(ledger.module("/opt/freed")), alloc=(4096, 1), free=(4096, 1))
ledger.save("x.mst")
assert rows("--by=module") == ["/opt/program", "… and 1 that holds nothing"], rows("--by=module")
ledger = Ledger()
ledger.count(ledger.site(ledger.module("/opt/freed")), alloc=(4096, 1), free=(4096, 1))
ledger.save("x.mst")
assert rows("--by=module") == ["/opt/freed"], rows("--by=module")
