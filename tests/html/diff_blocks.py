# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 300
"""The view of blocks and mappings in a comparison. If A and B are of one process, it shows which blocks came, went and
stayed (by address and time of allocation), and leads to each call stack. Its rows can be sorted, filtered, and reached
by a link. This also holds if B was taken first, and for a real program. The page says what it cannot tell. If A and B
are of two processes, it shows the blocks of each beside each other, without a word on what came. A page with 200,000
blocks has at most 5 MB, and the sums of all of them."""
import random

import support
from _page import Browser, Data, size_text, sys, two_snapshots
from _ledger import MIB, RESIDENCY, Ledger

S = 10**9
FILE = 2
STAYED, WENT, AGAIN, MAPPED, CAME, CUT = (0x10000 * number for number in range(1, 7))


def taken(file, second, blocks, mappings, resident=0, files=(), **header):
    """A ledger that was taken at this second. blocks, mappings: {(address, second of birth): MiB}. files: addresses of
    mapped files of a gigabyte."""
    ledger = Ledger(start_ns=S, end_ns=(1 + second) * S, flags=RESIDENCY if resident else 0, **header)
    model = ledger.owner(1, "unet", "<b>u.st")
    keep, load = (ledger.python(name, "/src/work.py", line) for name, line in (("keep", 3), ("load", 9)))
    site, other = ledger.site(stack=ledger.node([keep]), tag=ledger.tag(model)), ledger.site(stack=ledger.node([load]))
    for (address, birth), size in blocks.items():
        ledger.block(address, size * MIB, site, (1 + birth) * S, resident * size * MIB // 2)
    for (address, birth), size in mappings.items():
        ledger.mapping(address, int(size * MIB), other, birth_ns=(1 + birth) * S)
    for address in files:
        ledger.mapping(address, 1024 * MIB, kind=FILE)
    ledger.count(site, alloc=(sum(blocks.values()) * MIB, len(blocks)))
    ledger.count(other, alloc=(int(sum(mappings.values()) * MIB), len(mappings)), thread=1)
    ledger.save(file)


def page(a, b, to="page.html"):
    support.memstow("diff", a, b, "--html", "-o", to)
    return to


taken("a.mst", 5, {(STAYED, 1): 40, (WENT, 2): 3, (AGAIN, 2): 1}, {(MAPPED, 3): 8})
taken("b.mst", 9, {(STAYED, 1): 40, (AGAIN, 7): 5, (CAME, 8): 6}, {(MAPPED, 3): 2, (CUT, 3): 4}, resident=1,
      files=[CAME << 8])
data = Data(page("a.mst", "b.mst"))
assert data.documents["page"]["same_process"] and data.documents["page"]["b_is_later"]
sums = data.documents["blocks"]
assert (sums["a_seconds"], sums["b_seconds"]) == (5, 9), sums
MIBS = lambda blocks, before, after: dict(blocks=blocks, before_bytes=before * MIB, after_bytes=after * MIB)
assert (sums["only_a"], sums["only_b"]) == (MIBS(2, 4, 0), MIBS(2, 0, 11)), sums
assert (sums["both"], sums["unclear"]) == (MIBS(2, 48, 42), MIBS(1, 0, 4)) and sums["not_live"] == 1, sums

# The blocks that changed most come first. An address that was freed and used again is two blocks.
ROWS = {("came", CAME): ["+6.0 MiB", "6.0 MiB", "1.0 s"], ("went", WENT): ["−3.0 MiB", "3.0 MiB", "3.0 s"],
        ("came", AGAIN): ["+5.0 MiB", "5.0 MiB", "2.0 s"], ("went", AGAIN): ["−1.0 MiB", "1.0 MiB", "3.0 s"],
        ("stayed", STAYED): ["–", "40.0 MiB", "8.0 s"], ("stayed", MAPPED): ["−6.0 MiB", "2.0 MiB", "6.0 s"],
        ("not clear", CUT): ["+4.0 MiB", "4.0 MiB", "6.0 s"],
        ("not clear", CAME << 8): ["+1.0 GiB", "1.0 GiB", "8.0 s"]} # a mapped file
browser = Browser()
browser.open("page.html")
browser.click("[data-view=blocks]")
heads = [one.text for one in browser.all(".rows th")]
assert heads == ["Change", "Size", "Age", "A to B", "Kind", "Owner", "Where", "Address"], heads


def shown():
    return {(row[3], int(row[7], 16)): row[:3] for row in browser.rows()}


assert shown() == ROWS and browser.text(".count").startswith("8 blocks of 64 KiB"), (shown(), browser.text(".count"))
order = [row[0].strip("+−") for row in browser.rows()]
assert order == ["1.0 GiB", "6.0 MiB", "6.0 MiB", "5.0 MiB", "4.0 MiB", "3.0 MiB", "1.0 MiB", "–"], order
assert {row[7]: row[4:7] for row in browser.rows()}[hex(CAME)] == ["block", "unet (<b>u.st)", "pykeepwork.py:3"]
said = browser.text(".how")
for words in ("Came: 11.0 MiB in 2; went: 4.0 MiB in 2; stayed: 42.0 MiB in 2.",
              "its address and the time of its allocation are the same",
              "allocated and freed between A and B is in neither", "1 block of B (4.0 MiB) is older than A",
              "1 mapping of files and of reserved addresses: listed"):
    assert words in said, said

# The kinds by buttons, by a link, and back.
browser.click("[data-choice=went]")
assert set(shown()) == {("went", WENT), ("went", AGAIN)} and browser.text(".count").startswith("2 of 8"), shown()
assert "which=went" in browser.fragment, browser.fragment
browser.open("page.html", "#blocks?which=came&sort=age")
assert [row[3] for row in browser.rows()] == ["came", "came"] and browser.rows()[0][2] == "2.0 s", browser.rows()
browser.open("page.html", "#blocks?which=__proto__&sort=__proto__&row=99999999")
assert len(browser.rows()) == 8 and browser.one("[data-choice='']").get_attribute("aria-pressed") == "true"

# The details of a block show its own facts and its call stack. Resident bytes are known in B, but not in A.
browser.open("page.html", "#blocks?which=stayed&sort=size")
browser.open_first()
assert browser.details() == {"place": "stayed", "before_size": "40.0 MiB", "after_size": "40.0 MiB",
                             "after_resident": "20.0 MiB", "age": "8.0 s", "kind": "block",
                             "owner": "unet (<b>u.st)"}, browser.details()
assert "keep" in browser.text(".details .stack") and not browser.all("main b b")
browser.open("page.html", "#blocks?which=went")
browser.open_first()
assert browser.details()["after_size"] == browser.details()["after_resident"] == "–", browser.details()
browser.is_clean()

# B was taken before A: nothing "came".
browser.open(page("b.mst", "a.mst"), "#blocks")
assert {row[3] for row in browser.rows()} == {"only in A", "only in B", "in both", "not clear"}, browser.rows()
assert "B was taken before A" in browser.text(".how"), browser.text(".how")
assert "came:" not in browser.text("main").lower(), browser.text(".how")
sizes = {(row[3], int(row[7], 16)): row[1] for row in browser.rows()}
assert sizes.items() >= {("only in A", CAME): "6.0 MiB", ("only in B", WENT): "3.0 MiB",
                         ("not clear", CUT): "4.0 MiB"}.items(), sizes

# The same file twice: all stayed. Files without blocks have no such view.
browser.open(page("b.mst", "b.mst"), "#blocks")
assert {row[3] for row in browser.rows()} == {"stayed"} and len(browser.all("[data-choice]")) == 2
taken("none.mst", 5, {}, {})
browser.open(page("none.mst", "none.mst"))
assert not browser.all("[data-view=blocks]")

# If A and B are of two processes, no block of A counts as a block of B, even at the same address. The page has a table
# for each side.
taken("other.mst", 9, {(STAYED, 1): 40, (CAME, 8): 7}, {}, pid=1001)
browser.open(page("a.mst", "other.mst"), "#blocks")
tables = browser.js("return [...document.querySelectorAll('.pair-part')].map((part) => [part.querySelector('h2')."
                    "textContent, [...part.querySelectorAll('.rows tbody tr[data-row]')].map((row) => "
                    "row.cells[0].textContent)])")
assert tables == [["A: a.mst", ["40.0 MiB", "8.0 MiB", "3.0 MiB", "1.0 MiB"]],
                  ["B: other.mst", ["40.0 MiB", "7.0 MiB"]]], tables
assert "of two processes" in browser.text(".how") and not browser.all("[data-choice]")
places = browser.js("return [...document.querySelectorAll('.pair-part')].map((one) => one.getBoundingClientRect().x)")
assert places[0] < places[1], places
next(head for head in browser.all(".rows th button") if head.text == "Age").click()
browser.settled()
assert "sort=age" in browser.fragment
browser.open_first()
assert "place" not in browser.details() and browser.details()["before_size"] == "40.0 MiB", browser.details()
browser.size(390, 800)
browser.settled()
assert browser.js("return document.documentElement.scrollWidth") <= 390
browser.size(1280, 900)
browser.is_clean()

# A real program, and snapshots of it.
PROGRAM = """
import os, sys
def early(): return bytearray(5_000_000)
def late(): return bytearray(7_000_000)
def always(): return bytearray(9_000_000)
kept, first = always(), early()
print(os.getpid(), flush=True), sys.stdin.readline()
del first
second = late()
print(os.getpid(), flush=True), sys.stdin.readline()
os._exit(0)
"""
two_snapshots(sys.executable, "-c", PROGRAM)
for b in ("two.mst", "x.mst"): # a snapshot, and the ledger at the end
    browser.open(page("one.mst", b), "#blocks")
    for place, name, size in (("went", "early", 5_000_000), ("came", "late", 7_000_000),
                              ("stayed", "always", 9_000_000)):
        assert any(row[3] == place and row[-2].startswith(f"py{name}<string>:") and row[1] == size_text(size)
                   for row in browser.rows()), (name, browser.rows())
browser.is_clean()

# With 200,000 blocks the page has at most 5 MB. It has the blocks that changed most, and the sums of all blocks.
random.seed(21)
sizes = {}
for side, second in (("a", 5), ("b", 9)):
    ledger = Ledger(start_ns=S, end_ns=(1 + second) * S)
    frames = [ledger.python(f"function_{number}", f"/src/{number % 97}.py", number) for number in range(500)]
    sites = [ledger.site(stack=ledger.node([random.choice(frames) for _ in range(12)])) for _ in range(20_000)]
    for number in range(100_000):
        # Each third block stayed; the others came or went.
        birth = 2 * S + number if number % 3 == 0 else random.randrange(1, 4) * S if side == "a" else 8 * S
        size = 65536 + number * 7919 % MIB if number % 3 == 0 else random.randrange(65536, 2 * MIB)
        ledger.block((number + 1) << 24, size, random.choice(sites), birth)
        sizes.setdefault("stayed" if number % 3 == 0 else side, []).append(size)
    for site in sites:
        ledger.count(site, alloc=(5 * MIB, 5))
    ledger.save(f"{side}.mst")
support.memstow("diff", "a.mst", "b.mst", "--html", "-o", "page.html")
size = (support.HERE / "page.html").stat().st_size
data = Data("page.html")
print(f"{size / 1e6:.2f} MB, {len(data.columns['blocks.age']):,} blocks")
assert size <= 5_000_000, size
sums = data.documents["blocks"]
assert (sums["only_a"]["before_bytes"], sums["only_b"]["after_bytes"]) == (sum(sizes["a"]), sum(sizes["b"]))
assert sums["both"]["after_bytes"] == sum(sizes["stayed"]) / 2 and sums["unclear"]["blocks"] == 0
omitted, there = data.documents["page"]["blocks_omitted"], data.columns["blocks.place"]
assert omitted == sum(sums[key]["blocks"] for key in ("only_a", "only_b", "both")) - len(there) > 0
assert there.count(2) < len(there) / 10, there.count(2) # blocks that stayed make room first
browser.open("page.html", "#blocks")
assert f"{omitted:,} that matter less are left out" in browser.text(".count"), browser.text(".count")
browser.is_clean()
