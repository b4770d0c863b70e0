#!/usr/bin/env python3
# long
# needs: comfyui deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 600
"""The page of a real ComfyUI's snapshot shows what `report --json` of the same file says. The page of a comparison with
a later snapshot, in which a model is gone, shows what `diff --json` says."""
import collections, json, sys

import support
from _comfy import Comfy, held

sys.path.insert(0, str(support.ROOT / "tests/html"))
from _page import Browser, Data, report, size_text # noqa: E402


def is_right(file):
    """Opens the HTML page of the file, and compares it with the report of the file."""
    document = support.report(file, "--top=0") # all sites would take gigabytes in Python
    page, browser = report(file), Browser()
    for check in (overview, marks, owners, flame):
        check(browser, page, document)
    browser.is_clean() # it requested nothing, and complained of nothing
    browser.driver.quit()


def overview(browser, page, document):
    browser.open(page)
    shown = dict(browser.js("return [...document.querySelectorAll('tr.sum [data-figure]')].map("
                            "(one) => [one.dataset.figure, one.textContent])"))
    totals = document["totals"]
    for key in ("live_bytes", "peak_bytes", "allocated_bytes"):
        assert shown[key] == size_text(totals[key]), (key, shown, totals[key])
    assert shown["live_blocks"] == f"{totals['live_blocks']:,}", shown
    assert size_text(document["residency"]["rss_bytes"]) in browser.text("#residency")


def marks(browser, page, document):
    """If the range is the whole time, the list has the marks of the curve: at most fifty, and one line for the rest."""
    history = document["history"]
    end = max(history["seconds"][-1], document["process"]["elapsed_seconds"])
    browser.open(page, f"#overview?from=0&to={end + 1}")
    listed = [one.text for one in browser.all(".events li")]
    assert len(listed) == min(len(history["marks"]), 51) and len(listed) > 4, (len(listed), len(history["marks"]))
    for mark, text in zip(history["marks"], listed[:50]):
        assert mark["name"] is None or " ".join(mark["name"].split()) in text, (mark, text)
    kinds = {mark["kind"] for mark in history["marks"]}
    assert {"run_began", "run_ended", "came"} <= kinds, kinds
    assert any(text.endswith(" began") or " began (" in text for text in listed), listed
    live = [host + mapped for host, mapped in zip(history["host_bytes"], history["mapped_bytes"])]
    most = browser.js("return document.querySelector('tr[data-curve=\"Live memory\"] [data-range=most]').textContent")
    assert most == size_text(max(live)), (most, max(live))


def owners(browser, page, document):
    """Models, nodes and runs with their bytes."""
    browser.open(page, "#owners")
    for kind in ("model", "node", "run"):
        known = [one for one in document["owners"] if one["kind"] == kind and one["live_bytes"] > 0]
        assert known, (kind, document["owners"])
        browser.type("[type=search]", kind)
        rows = browser.rows()
        for owner in sorted(known, key=lambda one: -one["live_bytes"])[:5]:
            assert any(row[0] == kind and row[1] == size_text(owner["live_bytes"]) and owner["name"] in row
                       for row in rows), (owner, rows)


def inverted(browser, page):
    """The inverted graph has the innermost Python functions first, each with the bytes that the page's data give for
    it. Inverted once more, the graph is as before."""
    sums = Data(page).by_innermost(lambda line: "python" in line[4] and "import" not in line[4], "live_bytes")
    functions = collections.Counter()
    for line, value in sums.items():
        functions[line and (line[0], line[1])] += value
    outermost = browser.calls()
    browser.click("[data-choice=python]")
    browser.click("[data-toggle=inverted]")
    calls = browser.calls()
    for (name, _), value in [one for one in functions.most_common(6) if one[0]][:5]:
        assert any(shown.startswith(f"py {name}") and figure == size_text(value) for shown, figure in calls), (
            name, value, calls)
    browser.click("[data-toggle=inverted]")
    assert browser.calls() != calls
    browser.click("[data-choice=both]")
    assert browser.calls() == outermost


def flame(browser, page, document):
    """Checks the flame graph of all memory, also inverted, a search in it, and a zoom into the largest model."""
    host = document["totals"]["live_bytes"]
    browser.open(page, "#flame")
    assert browser.total() == host, (browser.total(), host)
    inverted(browser, page)
    assert browser.total() == host
    browser.type("[type=search]", "UNETLoader.load_unet")
    browser.wait("document.querySelector('.found').dataset.sum")
    found = int(browser.js("return document.querySelector('.found').dataset.sum"))
    matched = support.report(document["process"]["file"], "--top=0", "--match=UNETLoader.load_unet")["sites_omitted"]
    assert found == matched["live_bytes"] > 2**20, (found, matched)
    browser.open(page, "#flame?owners=1")
    models = {one["name"]: one["live_bytes"] for one in document["owners"] if one["kind"] == "model"}
    largest = max(models, key=models.get)
    row = next(row for row in browser.all(".calls .row") if row.text.startswith("model") and largest in row.text)
    assert size_text(models[largest]) in row.text, (row.text, models)
    row.click()
    browser.press(".flame", "ENTER")
    assert browser.chosen() == models[largest] and "zoom=" in browser.fragment, (browser.chosen(), models)
    link = browser.fragment # which shows the same again
    browser.open(page, link)
    assert browser.chosen() == models[largest] and largest in browser.text(".flame-view .details h2")


def compares(a, b, model):
    """Checks the page that compares A with B. The model has shrunk from A to B."""
    browser = Browser()
    support.memstow("diff", a, b, "--html", "-o", "diff.html")
    document = json.loads(support.memstow("diff", a, b, "--by=model", "--json", "--top=1000").stdout)
    browser.open("diff.html")
    growth = document["growth_bytes"]
    assert browser.text("[data-figure=change_live_bytes]") == size_text(growth), growth
    assert growth < 0 and "shrank by" in browser.text(".headline"), growth
    browser.click("[data-view=flame]")
    assert browser.total() == growth, (browser.total(), growth)
    browser.click("[data-toggle=by-owner]")
    row = next(row for row in document["rows"] if row["name"].startswith(model))
    shown = [figure for name, figure in browser.calls() if name.startswith("model") and model in name]
    assert row["growth_bytes"] < 0 and size_text(row["growth_bytes"]) in shown, (row, browser.calls())
    browser.is_clean()
    browser.driver.quit()


with Comfy("memstow", ffn=32_768) as comfy:
    comfy.run(held(True, 1))
    model = next(one for one in comfy.report()["owners"] if one["type"] == "MODEL")
    support.memstow("snapshot", comfy.pid(), "-o", "held.mst")
    comfy.run(held(False, 2))
    support.memstow("snapshot", comfy.pid(), "-o", "gone.mst")
is_right("held.mst")
compares("held.mst", "gone.mst", model["name"])
