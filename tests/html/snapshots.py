# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 300
"""The page of several snapshots of one process, and of a series: a range of time shows what owners and places held at
the first and at the last snapshot in it. The figures are those of --json of each file. This also holds for memory on
devices, over the simulated driver, a test double. Files of two processes, or in the wrong order, are refused. With many
sites the page stays small, and the rows still add up."""
import pathlib, random, struct, subprocess

import support
from _devices import record
from _page import Browser, Data, report, size_text, sys
from _ledger import MIB, Ledger

S, SERIES = 10**9, 40 # the type of the section
TIMES = (2, 4, 8)
HELD = { # (place, model): MiB at each snapshot
    ("keep", "unet <b>"): (10, 20, 5), ("load", None): (0, 3, 3), ("gone", "clip"): (6, 0, 0),
    ("keep", "clip"): (1, 1, 1), ("load", "unet <b>"): (2, 2, 9),
}


def taken(number, **header):
    """A snapshot: the ledger as it was at a second of TIMES."""
    ledger = Ledger(start_ns=S, end_ns=S + TIMES[number] * S, total_peak=0, **header)
    owners = {name: ledger.owner(1, name, f"{name}.st") for name in ("unet <b>", "clip")}
    lines = {name: ledger.python(name, "/src/work.py", line) for line, name in enumerate(("keep", "load", "gone"), 3)}
    for (place, model), sizes in HELD.items():
        if place == "gone" and number == 2:
            continue # the stack is not in the last file any more
        site = ledger.site(stack=ledger.node([lines[place]]), tag=ledger.tag(owners.get(model, 0)))
        ledger.count(site, alloc=(40 * MIB, 9), free=((40 - sizes[number]) * MIB, 4))
    for second in range(TIMES[number] + 1):
        ledger.point(S + second * S, (second * 5 % 17 + 1) * MIB)
    ledger.save(f"{number}.mst")
    return f"{number}.mst"


files = [taken(number) for number in range(3)]
support.memstow("report", "--html", "-o", "page.html", *files)
data = Data("page.html")
known = data.documents["snapshots"]
assert known["files"] == files and known["seconds"] == list(TIMES) and not known["series"], known
assert known["live_bytes"] == [support.report(file)["totals"]["live_bytes"] for file in files]
sites = {(one["function"], one["model"]): one["bytes"] for one in known["sites"]}
assert sites == {(place if place != "gone" else None, model and f"{model} ({model}.st)"): [size * MIB for size in sizes]
                 for (place, model), sizes in HELD.items()}, sites
owners = [{one["id"]: one["live_bytes"] for one in support.report(file)["owners"]} for file in files]
for owner in known["owners"]:
    assert owner["bytes"] == [figures[owner["id"]] for figures in owners], owner
# The rest of the page is that of the last file.
alone = Data(report("2.mst", to="alone.html"))
assert {name: text for name, text in data.documents.items() if name not in ("snapshots", "leaks")} == alone.documents
assert data.columns == alone.columns

browser = Browser()


def tables():
    return {table: {row[0]: row[1:] for row in rows} for table, rows in browser.js(
        "return [...document.querySelectorAll('.at-snapshots')].map((table) => [table.dataset.of, "
        "[...table.querySelectorAll('tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))])")}


def opened(page, low, high):
    browser.open(page, f"#overview?from={low}&to={high}")
    browser.wait("document.querySelector('.range .unknown')")
    return tables()


def change_text(value):
    return "–" if not value else ("+" if value > 0 else "") + size_text(value)


def expected(first, last):
    places = {}
    for (place, model), sizes in HELD.items():
        name = "(a call stack that the last file does not have any more)" if place == "gone" else \
            f"py{place} work.py:{'keep load'.split().index(place) + 3}"
        before, after = sizes[first] * MIB, sizes[last] * MIB
        if before or after:
            places[name + (f" · {model} ({model}.st)" if model else "")] = [
                size_text(before), size_text(after), change_text(after - before)]
    return places


shown = opened("page.html", 1, 9)
assert shown["Where"] == expected(0, 2), (shown["Where"], expected(0, 2))
assert shown["Owner"] == {"unet <b> (unet <b>.st)": ["12.0 MiB", "14.0 MiB", "+2.0 MiB"],
                          "clip (clip.st)": ["7.0 MiB", "1.0 MiB", "−6.0 MiB"]}, shown["Owner"]
said = browser.text("[data-snapshots]")
assert said == ("3 snapshots: 19.0 MiB live after 2.0 s (0.mst), 18.0 MiB after 8.0 s (2.mst)."), said
assert opened("page.html", 3.5, 8)["Where"] == expected(1, 2)
# The largest changes come first. Each snapshot has a mark on the curve.
firsts = browser.js("return [...document.querySelectorAll('[data-of=Where] tbody tr')].map((row) => "
                    "row.cells[3].textContent)")
assert firsts == ["−15.0 MiB", "+7.0 MiB", "–", "–"], firsts
assert "After 4.0 s: snapshot" in [one.text for one in browser.all(".events li")]
browser.press(".timeline", "HOME", "PAGE_DOWN")
said = browser.text(".moment")
assert said.startswith("After 2.0 s") and "snapshot" in said, said
# One snapshot, and none.
one = opened("page.html", 3.5, 7)
assert one["Owner"] == {"unet <b> (unet <b>.st)": ["22.0 MiB"], "clip (clip.st)": ["1.0 MiB"]}, one
assert browser.text("[data-snapshots]") == "One snapshot, after 4.0 s (1.mst): 26.0 MiB live."
assert not opened("page.html", 4.5, 7.5)
assert browser.text("[data-snapshots]") == ("No snapshot was taken in this range: the last one before after 4.0 s, "
                                            "the next one after 8.0 s.")
assert "known of the snapshots" in browser.text(".unknown") and not browser.all("main b b")
browser.size(390, 800)
browser.open("page.html", "#overview?from=1&to=9")
browser.wait("document.querySelector('.range .unknown')")
assert browser.js("return document.documentElement.scrollWidth") <= 390
browser.size(1280, 900)
browser.is_clean()

# The page of one file has no such tables, and says how to get them.
opened("alone.html", 1, 7)
assert not browser.all("[data-snapshots]") and "memstow report --html FIRST SECOND" in browser.text(".unknown")
browser.is_clean()

# Refused: another process, the wrong order, too many files. The page is not written.
taken(1, pid=1001)
for words, code, why in ((["0.mst", "1.mst"], 2, "of another process"), (["2.mst", "0.mst"], 2, "was taken earlier"),
                         (["0.mst"] * 101, 2, "100 FILEs at most"), (["0.mst", "none.mst"], 3, "none.mst")):
    done = support.memstow("report", "--html", "-o", "no.html", *words, status=code)
    assert why in done.stderr and not pathlib.Path("no.html").exists(), done.stderr
assert "one FILE or PID" in support.memstow("report", "0.mst", "2.mst", "--json", status=2).stderr

# A real program and its series. The page shows what the growing place held at the first and at the last reading.
PROGRAM = f"""
import sys
sys.path.insert(0, {str(support.ROOT / "tools/python")!r})
import memstow, os
kept = []
def between(): kept.append(bytearray(300_000))
print(os.getpid(), flush=True)
for line in sys.stdin:
    with memstow.run("a run"): pass
    between()
    print("done", flush=True)
"""
process = support.start(support.MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", sys.executable, "-c", PROGRAM,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
pid = process.stdout.readline().strip()
series = support.start(support.MEMSTOW, "leaks", pid, "--series=s.mst", "--runs=8", "--json", stdout=subprocess.PIPE)
while series.poll() is None: # on a busy machine, several runs may become one reading
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"
process.stdin.close()
support.expect_exit(process)
known = Data(report("s.mst", to="series.html")).documents["snapshots"]
assert known["series"] and len(known["seconds"]) == len(known["live_bytes"]) > 0, known
grown = next(one for one in known["sites"] if one["function"] == "between")
assert grown["bytes"] == sorted(grown["bytes"]) and grown["bytes"][-1] >= 300_000, grown
shown = opened("series.html", 0, known["seconds"][-1] + 1)
row = next(figures for name, figures in shown["Where"].items() if name.startswith("pybetween"))
assert row[1 if len(row) == 3 else 0] == size_text(grown["bytes"][-1]), (row, grown)
assert "A series has only sites that hold something at its end" in browser.text(".range")
browser.is_clean()

# If a series is damaged, the command says so, and writes the page without it.
data, at = bytearray(pathlib.Path("s.mst").read_bytes()), 4096
while (section := struct.unpack_from("<IHHQ", data, at))[0] != SERIES:
    at += section[3]
data[at + 32:at + 35] = b"\xff\xff\x7f" # too many points
pathlib.Path("bad.mst").write_bytes(data)
done = support.memstow("report", "bad.mst", "--html", "-o", "bad.html")
assert "a series that does not add up" in done.stderr and "snapshots" not in Data("bad.html").documents, done.stderr

# Devices.
record("d.mst", "host")
support.memstow("report", "--html", "-o", "page.html", "d.mst", "d.mst")
known, document = Data("page.html").documents["snapshots"], support.report("d.mst")
assert known["device_bytes"] == [60 * MIB] * 2 and known["live_bytes"] == [document["totals"]["live_bytes"]] * 2, known
on_devices = {one["name"]: one["bytes"] for one in known["owners"] if one["on_device"]}
assert on_devices["the model"] == [60 * MIB] * 2, on_devices
sites = {one["function"]: one["bytes"] for one in known["sites"] if one["on_device"]}
assert sites == {"take_first": [40 * MIB] * 2, "take_second": [20 * MIB] * 2}, sites
shown = opened("page.html", 0, 99)
assert shown["Owner"]["the model (m.bin), on devices"] == ["60.0 MiB", "60.0 MiB", "–"], shown["Owner"]
assert sum("on devices" in name for name in shown["Where"]) == 2, shown["Where"]
browser.is_clean()

# Many sites: the page is small, and "all others" is exact.
random.seed(4)
sizes = [[random.randrange(1 << 20) for _ in range(8)] for _ in range(20_000)]
for number in range(8):
    ledger = Ledger(start_ns=S, end_ns=(2 + number) * S, total_peak=0)
    frames = [ledger.python(f"function_{line}", "/src/work.py", line) for line in range(20_000)]
    for line, size in zip(frames, sizes):
        ledger.count(ledger.site(stack=ledger.node([line])), alloc=(size[number], 1))
    for second in range(8):
        ledger.point(S + second * S, MIB)
    ledger.save(f"{number}.mst")
support.memstow("report", "--html", "-o", "page.html", *(f"{number}.mst" for number in range(8)))
size = pathlib.Path("page.html").stat().st_size
print(f"{size / 1e6:.2f} MB")
assert size <= 5_000_000
known = Data("page.html").documents["snapshots"]
assert len(known["sites"]) == 500 and known["sites_omitted"] == 20_000 - 500
shown = opened("page.html", 0.5, 9)["Where"]
assert len(shown) == 13 and list(shown)[-1] == "all others", list(shown)
listed = {f"pyfunction_{number} work.py:{number}" if number else "pyfunction_0 work.py": (size[0], size[-1])
          for number, size in enumerate(sizes)}
rest = [sum(size[at] for size in sizes) - sum(listed[name][-1 if at else 0] for name in shown if name != "all others")
        for at in (0, 7)]
assert shown["all others"][:2] == [size_text(value) for value in rest], (shown["all others"], rest)
browser.is_clean()
