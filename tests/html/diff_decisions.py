# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""Decisions of a comparison. If A and B are of one process, the page has the triggers of B that began or went on after
the last line that A has. It shows each of these triggers whole, with the names of its owners. The page says what is no
longer in the trace. If A and B are of two processes, the page has the triggers of each, named by their side. Without
triggers there is no such view. Names are shown as text. The page stays small with two full traces."""
import json, random

import support
from _page import Browser, Data
from _decisions import LINES, clean
from _ledger import MIB, Ledger

FIRST = next(number for number, line in enumerate(LINES) if line["kind"] == "HELD") + 1 # behind the first trigger


def saved(file, lines, first=1, **header):
    ledger = clean(lines, first)
    ledger.header.update(header)
    ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(3 * MIB, 1))
    ledger.save(file)


def page(a, b, to="page.html"):
    support.memstow("diff", a, b, "--html", "-o", to)
    return to


def cards():
    return [card.text for card in browser.all(".trigger")]


def headings():
    return [one.text for one in browser.all(".decisions > h2")]


saved("a.mst", LINES[:FIRST])
saved("b.mst", LINES)
data = Data(page("a.mst", "b.mst"))
trace = data.documents["decisions_b"]
whole = json.loads(support.memstow("decisions", "b.mst", "--json").stdout)
second = [line for line in whole["lines"] if line["n"] > FIRST and line["kind"] != "SET"]
assert trace["lines"] == second, trace["lines"]
assert [one["name"] for one in trace["owners"]] == ["clip.safetensors"] and trace["after_line"] == FIRST
assert data.documents["decisions_a"]["lines"] == []
browser = Browser()
browser.open("page.html")
browser.click("[data-view=decisions]")
assert headings() == ["In B, not in A"] and len(cards()) == 1, (headings(), cards())
assert cards()[0].startswith("Trigger 2: memory was short") and "clip.safetensors" in cards()[0], cards()
assert "0 kept" not in cards()[0] and "1 blocked. 0 B were given back" in cards()[0], cards()
assert "1 of 2 triggers in B began or went on after the last line that A has." in browser.text(".decisions > p")
browser.is_clean()

# B has nothing new; and A and B are exchanged.
browser.open(page("b.mst", "b.mst"), "#decisions")
assert not cards() and "A has all triggers of B (2)." == browser.text(".decisions > p"), browser.text(".decisions")
browser.open(page("b.mst", "a.mst"), "#decisions")
assert headings() == ["In B, not in A", "In A, not in B"] and len(cards()) == 1, headings()

# The first trigger was not over when A was taken, so the page shows the whole trigger as new in B. Once a trigger is
# over, the program may write a line HELD about it. If B has nothing but this line more than A, no trigger is new.
middle = next(number for number, line in enumerate(LINES) if line["kind"] == "CATEGORY")
saved("a.mst", LINES[:middle])
browser.open(page("a.mst", "b.mst"), "#decisions")
assert [card.split("\n")[0] for card in cards()] == ["Trigger 2: memory was short", "Trigger 1: a run ended"], cards()
assert "2 kept, 1 stowed, 1 freed, 1 blocked. 638.0 MiB" in cards()[1] and "unet.safetensors" in cards()[1], cards()[1]
saved("a.mst", LINES[:FIRST - 1])
saved("held.mst", LINES[:FIRST])
browser.open(page("a.mst", "held.mst"), "#decisions")
assert not cards() and "A has all triggers of B (1)." in browser.text(".decisions")

# If the trace of B begins after the end of A's trace, the page says how many lines between them are lost.
saved("a.mst", LINES[:FIRST])
saved("late.mst", LINES[FIRST:], first=FIRST + 101)
browser.open(page("a.mst", "late.mst"), "#decisions")
assert "100 lines between them are not in the trace of B any more" in browser.text(".decisions > p")

# If A and B are of two processes, the page has all triggers of both, and names the side of each.
saved("other.mst", LINES, pid=1001)
browser.open(page("a.mst", "other.mst"), "#decisions")
assert headings() == ["A: a.mst", "B: other.mst"] and len(cards()) == 3, headings()
labels = [one.get_attribute("aria-label") for one in browser.all(".trigger")]
assert labels == ["A, Trigger 1: a run ended", "B, Trigger 2: memory was short", "B, Trigger 1: a run ended"], labels
assert not browser.all(".decisions > p")
browser.is_clean()

# No triggers: no view.
saved("a.mst", LINES[:2])
browser.open(page("a.mst", "a.mst"))
assert not browser.all("[data-view=decisions]")


def full(file, pid):
    """Saves a ledger with a full trace: a megabyte of lines about owners whose names do not compress. Returns the
    number of triggers."""
    random.seed(pid)
    ledger = Ledger(pid=pid)
    noise = lambda: "".join(random.choice("0123456789abcdef") for _ in range(20_000))
    owners = [ledger.owner(1, noise()) for _ in range(300)]
    number = 0
    while len(ledger.ring) < 1_000_000:
        number += 1
        ledger.line(kind="TRIGGER", trigger=number, reason="request", owners=3, before_bytes=number * MIB)
        for owner in random.sample(owners, 3):
            ledger.line(kind="DECISION", trigger=number, owner=owner, policy="free", action="free", why="policy",
                        bytes=random.randrange(1 << 40))
        ledger.line(kind="ACT", trigger=number, kept=0, stowed=0, freed=3, blocked=0, before_bytes=1, after_bytes=0)
    ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(3 * MIB, 1))
    ledger.save(file)
    return number


count = full("a.mst", 1), full("b.mst", 2)
data = Data(page("a.mst", "b.mst"))
size = (support.HERE / "page.html").stat().st_size
print(f"{size / 1e6:.2f} MB")
assert size <= 2_500_000, size
for side, triggers in zip("ab", count):
    trace = data.documents[f"decisions_{side}"]
    shown = [line["trigger"] for line in trace["lines"] if line["kind"] == "TRIGGER"]
    assert shown == list(range(triggers - len(shown) + 1, triggers + 1)), shown[:5] # the latest
    assert trace["triggers_omitted"] == triggers - len(shown) > 0
    whole = json.loads(support.memstow("decisions", f"{side}.mst", "--json").stdout)
    assert trace["faults"] == whole["faults"] and len(whole["faults"]) > 200, len(trace["faults"])
    assert max(len(one["name"]) for one in trace["owners"]) <= 300
browser.open("page.html", "#decisions")
assert len(cards()) == 100
said = [one.text for one in browser.all(".decisions > p")]
omitted = [data.documents[f"decisions_{side}"]["triggers_omitted"] for side in "ab"]
assert said == [f"The first {count:,} of them are left out." for count in omitted], said
browser.is_clean()
