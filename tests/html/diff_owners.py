# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""Owners of a comparison in a browser: what each model, node and run has in A and in B, and its change, as in
`diff --json`. The rows can be sorted and filtered, and each leads to its call stacks. This also holds for memory on
devices, over the simulated driver, a test double. Names are shown as text."""
import json

import support
from _devices import record
from _page import Browser, size_text
from _ledger import MIB, Ledger

MODEL, NODE, RUN = 1, 2, 3
HELD = { # (model, node): MiB in A and in B
    ("unet <b>", "KSampler"): (40, 10), ("unet <b>", "VAEDecode"): (0, 5), ("clip", "KSampler"): (3, 3),
    ("clip", None): (1, 9), (None, "KSampler"): (2, 0), (None, None): (7, 8),
}


def save(side, file):
    ledger = Ledger()
    names = {name: ledger.owner(MODEL, name, f"{name}.st") for name in ("unet <b>", "clip")}
    nodes = {name: ledger.owner(NODE, name) for name in ("KSampler", "VAEDecode")}
    work = ledger.python("work", "/src/work.py", 3)
    for (model, node), sizes in HELD.items():
        if sizes[side]:
            site = ledger.site(tag=ledger.tag(names.get(model, 0), nodes.get(node, 0)), stack=ledger.node([work]))
            ledger.count(site, alloc=(sizes[side] * MIB, sizes[side]))
    ledger.save(file)


def change_text(value):
    return "–" if not value else ("+" if value > 0 else "") + size_text(value)


save(0, "a.mst"), save(1, "b.mst")
support.memstow("diff", "a.mst", "b.mst", "--html", "-o", "page.html")
expected = {}
for kind in ("model", "node"):
    document = json.loads(support.memstow("diff", "a.mst", "b.mst", f"--by={kind}", "--top=100", "--json").stdout)
    for row in document["rows"]:
        expected[kind, row["name"].split(" (")[0]] = row
browser = Browser()
browser.open("page.html")
browser.click("[data-view=owners]")
heads = [one.text for one in browser.all(".rows th")]
assert heads == ["Kind", "Change", "A", "B", "Blocks", "Name"], heads
rows = browser.rows()
found = {(row[0], row[-1].split(" (")[0]): row[1:5] for row in rows}
assert len(found) == len(rows) == 4, rows
for (kind, name), shown in found.items():
    row = expected[kind, name]
    blocks = row["growth_blocks"]
    assert shown == [change_text(row["growth_bytes"]), size_text(row["a_live_bytes"]) if row["a_live_bytes"] else "–",
                     size_text(row["b_live_bytes"]), f"{'+' * (blocks > 0)}{blocks:,}".replace("-", "−")], (shown, row)
assert found["model", "unet <b>"][0] == size_text(-25 * MIB) and found["model", "clip"][0] == "+8.0 MiB"
changes = [abs(expected[row[0], row[-1].split(" (")[0]]["growth_bytes"]) for row in rows]
assert changes == sorted(changes, reverse=True), changes # the largest first, whether grown or shrunk

# The rows are sorted by B, then filtered. The chosen owner leads to its call stacks, whose view has a link of its own.
next(head for head in browser.all(".rows th button") if head.text == "B").click()
browser.settled()
after = [expected[row[0], row[-1].split(" (")[0]]["b_live_bytes"] for row in browser.rows()]
assert after == sorted(after, reverse=True) and "sort=after" in browser.fragment, after
browser.type("[type=search]", "unet")
assert browser.text(".count") == "1 of 4 owners"
browser.open_first()
assert browser.details()["change"] == size_text(-25 * MIB), browser.details()
next(button for button in browser.all(".actions button") if button.text == "Its call stacks").click()
browser.settled()
assert browser.total() == -25 * MIB and "Only what unet <b>" in browser.text(".crumbs"), browser.total()
browser.open("page.html", browser.fragment)
assert browser.total() == -25 * MIB and not browser.all("main b b")
browser.is_clean()

# Devices have columns of their own; an owner that is on the host and on devices is one row.
record("a.mst"), record("b.mst", "host")
support.memstow("diff", "a.mst", "b.mst", "--html", "-o", "page.html")
browser.open("page.html", "#owners?find=the+model")
heads, (row, ) = [one.text for one in browser.all(".rows th")], browser.rows()
shown = dict(zip(heads, row))
assert (shown["Change"], shown["B"], shown["Change on devices"], shown["A on devices"], shown["B on devices"]) == (
    "+10.0 MiB", "10.0 MiB", "–", "60.0 MiB", "60.0 MiB"), shown
browser.open_first()
next(button for button in browser.all(".actions button") if button.text == "Its call stacks on devices").click()
browser.settled()
assert browser.total() == 0 and "place=device" in browser.fragment
browser.click("[data-choice=after]")
assert browser.total() == 60 * MIB
browser.is_clean()

# Without owners there is no such view.
for size, file in ((1, "a.mst"), (2, "b.mst")):
    plain = Ledger()
    plain.count(plain.site(plain.module("/opt/program")), alloc=(size * MIB, 1))
    plain.save(file)
support.memstow("diff", "a.mst", "b.mst", "--html", "-o", "page.html")
browser.open("page.html")
assert not browser.all("[data-view=owners]") and browser.all("[data-view=flame]")
browser.is_clean()
