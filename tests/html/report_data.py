# needs: cc
"""The data of a page for a report is that of --json: sites with live memory have the same call stacks, owners and
figures, and the totals of the process are the same. If the smallest sites are merged, the sums stay exact. A page is
written whole or not at all, and never over a ledger."""
import collections, json, os, pathlib

import support
from _page import Data, report
from _ledger import Ledger

MIB = 1 << 20


def figures(site):
    return tuple(site[f"{measure}_{unit}"] for measure in ("live", "allocated")
                 for unit in ("bytes", "blocks")) + (site["peak_bytes"],)


def of_json(document):
    """Returns the sites of a JSON document in the page's form: stacks innermost first, owners by name."""
    found = collections.Counter()
    for site in document["sites"]:
        stack = tuple((frame["function"], frame["file"] or "", frame["line"] or 0, frame["module"] or "")
                      for frame in site["stack"])
        found[(stack, site["model"], site["node"], site["run"], figures(site))] += 1
    return found


def of_page(page, names):
    found, columns = collections.Counter(), page.columns
    for site, stack in enumerate(page.stacks()):
        tag = columns.get("sites.tag", [0] * (site + 1))[site]
        owners = [names.get(columns[f"tags.{kind}"][tag]) if "tags.model" in columns else None
                  for kind in ("model", "node", "run")]
        lines = tuple((None if "unnamed" in kinds else function, file, line, module)
                      for function, file, line, module, kinds in stack if function != "(call stack unknown)")
        one = [columns[f"sites.{name}"][site]
               for name in ("live_bytes", "live_blocks", "allocated_bytes", "allocated_blocks")]
        peak = columns["sites.peak_bytes"][site] if "sites.peak_bytes" in columns else 0
        found[(lines, *owners, (*one, peak))] += 1
    return found


def same(file):
    """Compares the page of a file with its JSON."""
    document = support.report(file, "--top=1000000")
    page = Data(report(file))
    names = {owner["id"]: owner["name"] for owner in document["owners"] if owner["id"]}
    of_file, of_data = of_json(document), of_page(page, names)
    # --json has only sites with live memory
    of_data = collections.Counter({key: count for key, count in of_data.items() if key[4][0] or key[4][1]})
    for one, other in ((of_file, of_data), (of_data, of_file)):
        assert not one - other, str(next(iter(one - other)))[:2000]
    whole = page.documents["report"]
    for key in ("process", "totals", "peak", "residency", "owners", "lost"):
        assert whole[key] == document[key], key
    assert page.figure("live_bytes") == sum(site["live_bytes"] for site in document["sites"])
    return page, document


# A ledger with owners, native and Python frames, frames with the same text in two nodes, and a stack without frames.
ledger = Ledger(start_ns=10**9, end_ns=9 * 10**9, stacks=2, picture=(5 * MIB, 5 * MIB, 2 * 10**9), total_peak=5 * MIB)
libx, main = ledger.module("/lib/libx.so", bias=0x10000), ledger.module("/bin/main", bias=0x100000)
frames = [ledger.frame(0x100000 + 0x1100, main), ledger.python("work", "/src/work.py", 12),
          ledger.python("work", "/src/work.py", 13),
          ledger.python("_find_and_load", "<frozen importlib._bootstrap>", 1), ledger.frame(0x10000 + 0x1200, libx)]
outer = ledger.node([frames[0], frames[1]])
nodes = [outer, ledger.node([frames[4]], outer), ledger.node([frames[0], frames[2], frames[4]]),
         ledger.node([frames[0]]), ledger.node([frames[3], frames[4]], outer), ledger.node([frames[4]] * 20, outer)]
unet, node, run = ledger.owner(1, "unet"), ledger.owner(2, "KSampler"), ledger.owner(3, "run 1")
tags = [0, ledger.tag(unet), ledger.tag(unet, node, run), ledger.tag(0, node, run)]
for number in range(48):
    site = ledger.site(stack=nodes[number % 6], tag=tags[number % 4], module=libx, peak=1000 * number)
    ledger.count(site, alloc=(number << number % 5, number), free=(number // 2 << number % 5, number // 2))
ledger.count(ledger.site(module=main, peak=7), alloc=(4096, 1))
ledger.count(ledger.site(peak=8), alloc=(70 * MIB, 1))
ledger.line(kind="SET", owner=unet, policy="keep")
ledger.save("made.mst")
page, document = same("made.mst")
assert page.documents["decisions"]["lines"][0]["kind"] == "SET"
assert page.documents["owners"] == json.loads(support.memstow("owners", "made.mst", "--json").stdout)
kinds = {line[0]: line[4] for stack in page.stacks() for line in stack}
assert kinds["work"] == {"python"} and kinds["_find_and_load"] == {"python", "import"}, kinds
assert sum(line[0] == "work" for stack in page.stacks() for line in stack) > 8
assert len(page.texts) == len(set(page.texts)) and page.columns["tree.segment"][0] == 0

# With --top=5 the page shows five sites singly and merges the others. The sums stay the same, also by owner. The stack
# of a merged site is an outer part of the stack of each site in it.
few = Data(report("made.mst", "--top=5"))
left_out = len(page.columns["sites.live_bytes"]) - 5
assert few.documents["page"]["sites_folded"] == sum(
    few.columns["sites.folded"]) == left_out == 44, few.documents["page"]
for name in ("live_bytes", "live_blocks", "peak_bytes", "peak_blocks", "allocated_bytes", "allocated_blocks"):
    assert few.figure(name) == page.figure(name), name
by_tag = lambda data: [sum(value for value,
                           tag in zip(data.columns["sites.live_bytes"], data.columns["sites.tag"]) if tag == one)
                       for one in range(4)]
assert by_tag(few) == by_tag(page) and by_tag(page)[1]
stacks = {tuple(stack[::-1]) for stack in page.stacks()}
assert all(any(stack[:len(outer)] == outer for stack in stacks) for outer in (tuple(one[::-1]) for one in few.stacks()))
matched = Data(report("made.mst", "--match=work.py"))
assert matched.figure("live_bytes") == sum(site["live_bytes"]
                                           for site in support.report("made.mst", "--match=work.py")["sites"])

# A real program.
support.run("cc", "-O0", "-g", "-x", "c", "-o", "prog", "-", input="""
#include <stdlib.h>
static void *take(size_t size) { return malloc(size); }
int main(void) {
    void *volatile p;
    for (int i = 1; i < 40; i++) p = i % 2 ? take(1000 * i) : malloc(i);
    p = take(9 << 20);
    return !p;
}
""")
support.track("./prog")
page, document = same("out.mst")
assert page.columns["blocks.size"][0] == 9 << 20 and page.columns["blocks.age"][0] >= 0
stack = list(page.stacks())[page.columns["blocks.site"][0] - 1]
assert [line[0] for line in stack[:2]] == ["take", "main"] and stack[0][1].endswith("<stdin>"), stack

# The file is written whole or not at all, and anybody may read it; it may go to standard output. A page never replaces
# a ledger.
assert pathlib.Path("page.html").read_text().startswith("<!DOCTYPE html>")
assert pathlib.Path("page.html").read_text().endswith("</html>\n")
assert os.stat("page.html").st_mode & 0o777 == 0o666 & ~os.umask(os.umask(0o022))
assert support.memstow("report", "out.mst", "--html").stdout == pathlib.Path("page.html").read_text()
before = pathlib.Path("out.mst").read_bytes()
assert "is a memstow file" in support.memstow("report", "made.mst", "--html", "-o", "out.mst", status=3).stderr
assert pathlib.Path("out.mst").read_bytes() == before
assert "no/page.html" in support.memstow("report", "made.mst", "--html", "-o", "no/page.html", status=3).stderr
support.memstow("report", "made.mst", "--html", "-o", "/dev/null")
os.symlink("page.html", "link.html")
full = support.memstow("report", "made.mst", "--html", "-o", "/dev/full", status=3).stderr
assert full.endswith("memstow: /dev/full: No space left on device\n"), full
for words in (["-o", "x.html"], ["--json", "-o", "x.html"], ["--html", "--json"], ["--html", "-o", ""]):
    support.memstow("report", "made.mst", *words, status=2)
assert not pathlib.Path("x.html").exists() and not list(pathlib.Path().glob("*.??????"))
