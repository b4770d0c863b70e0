"""diff matches by name, never by id, and its order is stable."""
import json
from _ledger import MIB, Ledger
from support import memstow


def ledger(paths, **header):
    """Makes a ledger. `paths` is {path: (bytes, blocks)}. The paths get their ids in this order."""
    made = Ledger(**header)
    for path, live in paths.items():
        made.count(made.site(made.module(path)), alloc=live)
    return made


ledger({"/lib/a": (1000, 10), "/lib/b": (5000, 5), "/lib/same": (64, 1), "/lib/gone": (300, 3)}).save("a.mst")
ledger({"/lib/new2": (100, 1), "/lib/new1": (100, 1), "/lib/same": (64, 1), "/lib/b": (4000, 4), "/lib/a": (3048, 12)},
       pid=1001).save("b.mst")
assert memstow("diff", "a.mst", "b.mst").stdout == """\
A  a.mst (program, pid 1000): 6.2 KiB live
B  b.mst (program, pid 1001): 7.1 KiB live

module                                        grew by       blocks     live in B
/lib/a                                       +2.0 KiB           +2       3.0 KiB
/lib/new1                                      +100 B           +1         100 B
/lib/new2                                      +100 B           +1         100 B
/lib/gone                                      -300 B           -3           0 B
/lib/b                                        -1000 B           -1       3.9 KiB
total                                          +948 B            0       7.1 KiB
"""
document = json.loads(memstow("diff", "a.mst", "b.mst", "--json").stdout)
assert (document["format"], document["growth_bytes"], document["growth_blocks"]) == ("memstow-diff", 948, 0)
assert [row["name"] for row in document["rows"]] == ["/lib/a", "/lib/new1", "/lib/new2", "/lib/gone", "/lib/b"]
assert document["measure"] == "live" and document["rows_omitted"] == {"rows": 0, "growth_bytes": 0, "growth_blocks": 0}

# Only the first rows are shown; JSON has the sum of the others.
shown = memstow("diff", "a.mst", "b.mst", "--top=1").stdout.split("\n")
assert shown[4].startswith("/lib/a ") and shown[5] == "… and 4 more (--top=N shows N)", shown
assert shown[6].startswith("total "), shown
document = json.loads(memstow("diff", "a.mst", "b.mst", "--json", "--top=2").stdout)
assert len(document["rows"]) == 2
assert document["rows_omitted"] == {"rows": 3, "growth_bytes": -1200, "growth_blocks": -3}
many = ledger({f"/lib/{number}": (number + 1, 1) for number in range(1200)})
many.save("many.mst")
assert len(json.loads(memstow("diff", "a.mst", "many.mst", "--json").stdout)["rows"]) == 1000
assert len(json.loads(memstow("diff", "a.mst", "many.mst", "--json", "--by=module").stdout)["rows"]) == 1204
assert memstow("diff", "a.mst", "many.mst").stdout.count("\n") == 3 + 10 + 3
memstow("diff", "a.mst", "b.mst", "--top=x", status=2)

# Memory at the peaks.
for name, peak, held in (("a", 64, 20), ("b", 96, 50)):
    made = Ledger(total_peak=peak * MIB, host_peak=peak * MIB, picture=(peak * MIB, peak * MIB - MIB, 2 * 10**9))
    made.count(made.site(made.module("/lib/tidy"), peak=held * MIB), alloc=(peak * MIB, 40), free=(peak * MIB, 40))
    made.count(made.site(made.module("/lib/same"), peak=9 * MIB), alloc=(MIB, 1))
    made.save(f"{name}.mst")
assert memstow("diff", "a.mst", "b.mst").stdout.split()[-6:] == ["total", "0", "B", "0", "1.0", "MiB"]
assert memstow("diff", "a.mst", "b.mst", "--peak").stdout == """\
A  a.mst (program, pid 1000): 64.0 MiB at peak
B  b.mst (program, pid 1000): 96.0 MiB at peak

module                                        grew by       blocks     peak in B
/lib/tidy                                   +30.0 MiB            0      50.0 MiB
total                                       +32.0 MiB            0      96.0 MiB

The total compares the peaks; the rows compare the ledgers near them.
For A the rows show the ledger at 63.0 MiB, on its way down from the peak,
which was 1.0 s after the start and 1.0 MiB higher.
For B the rows show the ledger at 95.0 MiB, on its way down from the peak,
which was 1.0 s after the start and 1.0 MiB higher.
""", memstow("diff", "a.mst", "b.mst", "--peak").stdout
done = memstow("diff", "a.mst", "b.mst", "--peak", "--fail-over=10%", "--json", status=1)
assert done.stderr == "memstow: the peak grew by 32.0 MiB and 0 blocks: over the limit of 10%\n", done.stderr
document = json.loads(done.stdout)
assert (document["measure"], document["growth_bytes"], document["growth_blocks"]) == ("peak", 32 * MIB, 0)
assert document["rows"] == [{
    "name": "/lib/tidy", "growth_bytes": 30 * MIB, "growth_blocks": 0, "a_peak_bytes": 20 * MIB, "a_peak_blocks": 1,
    "b_peak_bytes": 50 * MIB, "b_peak_blocks": 1
}], document["rows"]
assert memstow("diff", "a.mst", "b.mst", "--peak", "--by=thread", status=2).stderr.startswith(
    "memstow: the peak is not known by thread ")

# Runs of two servers cannot be matched, so the row of a site sums up all runs of each server. For two ledgers of one
# process, each run has its own rows.
def server(pid, runs):
    made = Ledger(pid=pid)
    stack = made.node([made.python("sample", "/opt/nodes.py", 3)])
    node, model = made.owner(2, "KSampler"), made.owner(1, "UNET", "wan.safetensors")
    for number in range(runs):
        run = made.owner(3, f"run {number + 10 * runs}", retired=1)
        made.count(made.site(made.module("/opt/program"), tag=made.tag(model, node, run), stack=stack), alloc=(MIB, 1))
    return made.save(f"server{pid}.{runs}.mst")


def rows(*files, by="site"):
    return json.loads(memstow("diff", *files, f"--by={by}", "--json").stdout)["rows"]



two = rows(server(1000, 3), server(1001, 5))
assert [(row["model"], row["node"], row["run"], row["growth_bytes"])
        for row in two] == [("UNET", "KSampler", None, 2 * MIB)], two
assert len(rows(server(1000, 3), server(1000, 5))) == 8 and len(rows(server(1000, 3), server(1001, 5), by="run")) == 8
text = memstow("diff", "server1000.3.mst", "server1001.5.mst", "--by=site").stdout
assert "model UNET (wan.safetensors), node KSampler\n" in text and " run " not in text, text
assert memstow("diff", "server1000.3.mst", "server1001.5.mst", "--fail-over=site:1MiB",
               status=1).stderr.startswith("memstow: ")
memstow("diff", "server1000.3.mst", "server1001.5.mst", "--fail-over=site:3MiB")

# Long names are told apart by their ends, too.
long = Ledger()
for size, end in ((100, "a"), (200, "b")):
    long.count(long.site(0, long.tag(long.owner(1, "x" * 5000 + end, "origin"))), alloc=(size, 1))
long.save("long.mst")
Ledger().save("nothing.mst")
document = json.loads(memstow("diff", "nothing.mst", "long.mst", "--by=model", "--json").stdout)
assert [row["growth_bytes"] for row in document["rows"]] == [200, 100], document["rows"]

# Models that have the same name but come from several files are told apart. JSON has their origins for this.
def two_files(*sizes, **header):
    made = Ledger(**header)
    stack = made.node([made.python("load", "/opt/nodes.py", 5)])
    for file, size in zip(("a.st", "b.st"), sizes):
        tag = made.tag(made.owner(1, "MODEL WAN21", file), made.owner(2, "Loader", f"node of {file}"))
        made.count(made.site(0, tag, stack=stack), alloc=(size, 1))
    made.count(made.site(), alloc=(sizes[0], 1))
    return made.save(f"files{header['pid']}.mst")


files = two_files(9 * MIB, 2 * MIB, pid=1), two_files(2 * MIB, 9 * MIB, pid=2)
changes = {"a.st": -7 * MIB, "b.st": 7 * MIB, None: -7 * MIB}
found = rows(*files)
assert {row["model_origin"]: row["growth_bytes"] for row in found} == changes and len(found) == 3, found
assert {(row["model"], row["node"], row["node_origin"]) for row in found} == {
    ("MODEL WAN21", "Loader", "node of a.st"), ("MODEL WAN21", "Loader", "node of b.st"), (None, None, None)}, found
for by, origins in (("model", ["b.st", None, "a.st"]), ("node", ["node of b.st", None, "node of a.st"])):
    found = rows(*files, by=by)
    assert [row["growth_bytes"] for row in found] == [7 * MIB, -7 * MIB, -7 * MIB], found
    assert sorted(map(str, origins)) == sorted(str(row["origin"]) for row in found) and found[0]["origin"] == origins[0]
assert all("origin" not in row for row in rows(*files, by="module"))
for by in ("model", "site"):
    text = memstow("diff", *files, f"--by={by}").stdout
    assert "MODEL WAN21 (a.st)" in text and "MODEL WAN21 (b.st)" in text, text
