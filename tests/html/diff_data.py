"""The data of a page for a comparison is that of --json: each site with its call stack, owners, and its figures before
and after, on the host and on devices. Sites that changed least are merged; sums stay exact."""
import collections, json, pathlib

import support
from _page import Data
from _ledger import Ledger

MIB = 1 << 20


def made(file, factor, more):
    """Saves a ledger. With `more` not 0, it is the later one of two: some sites have grown, some have shrunk, and one
    is gone."""
    ledger = Ledger(stacks=2)
    libx, main = ledger.module("/lib/libx.so", bias=0x10000 * factor,
                               build_id=b"x" * 20), ledger.module("/bin/main", bias=0x100000)
    frames = [ledger.frame(0x100000 + 0x1100, main), ledger.python("work", "/src/work.py", 12),
              ledger.frame(0x10000 * factor + 0x1200, libx)]
    outer = ledger.node([frames[0], frames[1]])
    nodes = [outer, ledger.node([frames[2]], outer), ledger.node([frames[0], frames[2]])]
    unet, node = ledger.owner(1, "unet", "unet.bin"), ledger.owner(2, "KSampler")
    tags = [0, ledger.tag(unet), ledger.tag(unet, node)]
    for number in range(18):
        if more and number == 4:
            continue
        size = 1000 * (number + 1) * (factor if number % 2 else 1)
        ledger.count(ledger.site(stack=nodes[number % 3], tag=tags[number // 3 % 3], module=libx),
                     alloc=(size, number + factor))
    ledger.count(ledger.site(module=main), alloc=(more * MIB + 4096, 1 + more))
    ledger.count(ledger.site(stack=nodes[1]), alloc=(777, 1), free=(777, 1))
    ledger.save(file)


made("a.mst", 1, 0)
made("b.mst", 3, 2)
document = json.loads(support.memstow("diff", "a.mst", "b.mst", "--json", "--by=site").stdout)
support.memstow("diff", "a.mst", "b.mst", "--html", "-o", "page.html")
page = Data("page.html")
names = {one["id"]: one["name"] for one in page.documents["names"]["names"]}
assert sorted(names.values()) == ["KSampler", "unet"], names # owners alone, no places


def of_page(page):
    found, columns = collections.Counter(), page.columns
    for site, stack in enumerate(page.stacks()):
        owners = tuple(names.get(columns[f"tags.{kind}"][columns["sites.tag"][site]])
                       for kind in ("model", "node", "run"))
        lines = tuple((function, module) for function, file, line, module, kinds in stack)
        found[lines, owners] += 1
        figures[lines, owners] = tuple(columns[f"sites.{name}"][site]
                                       for name in ("before_bytes", "before_blocks", "after_bytes", "after_blocks"))
    return found


figures = {}
assert max(of_page(page).values()) == 1 and len(figures) == len(page.columns["sites.tag"])
changed = {key: value for key, value in figures.items() if value[:2] != value[2:]}
rows = {}
for row in document["rows"]:
    stack = tuple((frame["function"]
                   or next(line[0] for key in figures for line in key[0] if line[1] == frame["module"]
                           and "+0x" in line[0]), frame["module"] or "")
                  for frame in row["stack"]) or (("main", "/bin/main"),)
    rows[stack, (row["model"], row["node"], row["run"])] = tuple(
        row[f"{side}_live_{unit}"] for side in "ab" for unit in ("bytes", "blocks"))
assert changed == rows, str((changed.items() ^ rows.items()))[:1500]
for side, key in (("before", "a"), ("after", "b")):
    assert page.figure(f"{side}_bytes") == document[key]["live_bytes"]
    assert page.figure(f"{side}_blocks") == document[key]["live_blocks"]
whole = page.documents["diff"]
assert whole["a"] == document["a"] and whole["b"] == document["b"]
assert whole["growth_bytes"] == document["growth_bytes"] != 0

support.memstow("diff", "a.mst", "b.mst", "--html", "--top=4", "-o", "few.html")
few = Data("few.html")
assert few.documents["page"]["sites_folded"] == len(figures) - 4 == sum(few.columns["sites.folded"])
assert all(few.figure(name) == page.figure(name)
           for name in ("before_bytes", "before_blocks", "after_bytes", "after_blocks"))

# Other cases: a limit, the same file twice, a file without call stacks, options that do not go together, and an output
# file that is an input.
assert "over the limit" in support.memstow("diff", "a.mst", "b.mst", "--html", "-o", "page.html", "--fail-over=1KiB",
                                           status=1).stderr
assert Data("page.html").documents["diff"]["over"] == "1KiB"
support.memstow("diff", "a.mst", "a.mst", "--html", "-o", "same.html")
assert Data("same.html").columns["sites.before_bytes"] == Data("same.html").columns["sites.after_bytes"]
plain = Ledger()
plain.count(plain.site(plain.module("/lib/libx.so")), alloc=(64, 1))
plain.save("plain.mst")
support.memstow("diff", "plain.mst", "b.mst", "--html", "-o", "plain.html")
assert Data("plain.html").figure("before_bytes") == 64
for words in (["-o", "x.html"], ["--html", "--json"], ["--html", "--by=module"]):
    support.memstow("diff", "a.mst", "b.mst", *words, status=2)
before = pathlib.Path("a.mst").read_bytes()
support.memstow("diff", "a.mst", "b.mst", "--html", "-o", "a.mst", status=3)
assert pathlib.Path("a.mst").read_bytes() == before
