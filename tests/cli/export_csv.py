"""--csv writes one line for each site in the format of RFC 4180, the largest site first. The figures are those of
--json. No name breaks a line or becomes a formula in a spreadsheet."""
import csv, io, subprocess
import _hostile
from _ledger import Ledger
from _stacks import ledger, line, program
from support import MEMSTOW, report

COLUMNS = ["memory", "function", "kind", "module", "file", "line", "model", "node", "run", "live_bytes", "live_blocks",
           "peak_bytes", "peak_blocks", "allocated_bytes", "allocated_blocks", "live_error_bytes"]


def table(file, *options):
    """The rows below the header, read strictly."""
    text = subprocess.run([MEMSTOW, "report", file, "--csv", *options], capture_output=True, check=True).stdout.decode()
    assert text.endswith("\r\n") and text.count("\n") == text.count("\r\n")
    rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert rows[0] == COLUMNS and len(rows) == text.count("\n"), rows[0]
    assert all(len(row) == len(COLUMNS) for row in rows), [row for row in rows if len(row) != len(COLUMNS)]
    return [dict(zip(COLUMNS, row)) for row in rows[1:]]


path, offsets = program()
made = ledger(path, offsets, total_peak=6000, host_peak=6000, picture=(6000, 5900, 2 * 10**9))
tag = made.tag(model=made.owner(1, "unet", "a.st"), node=made.owner(2, "Sampler"), run=made.owner(3, "run 7"))
python = made.node([made.python("load", "/opt/load.py", 12), made.frame(0x10, made.module("/opt/libx.so"))])
made.count(made.site(0, tag, stack=python, peak=900), alloc=(700, 7), free=(100, 1))
made.count(made.site(1), alloc=(50, 1))
made.count(made.site(0), alloc=(9, 1), free=(9, 1))
made.save("x.mst")
SHOP, LOAD, BARE = (["host", "order", "native", str(path), str(path.with_suffix(".cc")), str(line("order")), "", "", "",
                     "3000", "3", "5000", "1", "5000", "5", "0"],
                    ["host", "load", "python", "", "/opt/load.py", "12", "unet (a.st)", "Sampler", "run 7", "600", "6",
                     "900", "1", "700", "7", "0"],
                    ["host", path.name, "", str(path), "", "", "", "", "", "50", "1", "0", "0", "50", "1", "0"])
rows = lambda *options: [list(row.values()) for row in table("x.mst", *options)]
assert rows() == [SHOP, LOAD, BARE], rows()
assert rows("--by=site", "--match=load") == [LOAD] and rows("--peak") == [SHOP, LOAD]
REST = ["host", "(2 more)", *[""] * 7, "650", "7", "900", "1", "750", "8", "0"]
assert rows("--top=1") == [SHOP, REST], rows("--top=1")
churn = rows("--churn")
assert [row[-3] for row in churn] == ["5000", "700", "50", "9"] and churn[-1][1] == "(call stack unknown)", churn
document = report("x.mst")
assert sum(int(row[9]) for row in rows()) == document["totals"]["live_bytes"]

Ledger().save("empty.mst")
assert table("empty.mst") == []

# ---- samples have errors

sampled = Ledger(stacks=3, sample_bytes=1000)
rest = sampled.unsampled()
sampled.count(rest, alloc=(50_000, 500))
sampled.count(sampled.site(stack=sampled.node([sampled.python("f", "/a.py", 1)])), alloc=(3000, 30))
sampled.save("sampled.mst")
with_error = [row for row in table("sampled.mst") if row["function"] == "f"]
assert with_error and int(with_error[0]["live_error_bytes"]) > 0, with_error

# ---- names

sizes = _hostile.save("hostile.mst")
found = table("hostile.mst")
assert sorted(int(row["live_bytes"]) for row in found) == sorted(sizes.values())
names = {int(row["live_bytes"]): row for row in found}
for name, size in sizes.items():
    row = names[size]
    assert not any(ord(c) < 32 or 0x7f <= ord(c) < 0xa0 for field in row.values() for c in field), row
    assert not any(field.strip().startswith(tuple("=+-@")) for field in row.values()), row
    if name.strip(" ").startswith(tuple("=+-@")):
        assert row["function"] == "'" + name and row["model"].startswith("'" + name), row
    elif name.isprintable() and name and len(name) < 100:
        assert row["function"] == name, row
assert max(len(row["function"]) for row in found) < 1100
