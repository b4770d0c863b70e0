# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 300
"""The page of a real program in a browser. Its views show what --json has, also after a search, a zoom, an inversion or
a filter, and when they are opened by a link. The page requests nothing."""
import re

import support
from _page import Browser, report, size_text, sys

support.track(sys.executable, support.ROOT / "examples/gallery.py", options=["--python-objects"])
document = support.report("out.mst", "--top=1000000")
peaks = support.report("out.mst", "--top=1000000", "--peak")
page = report("out.mst")
totals, sites = document["totals"], document["sites"]
live = sum(site["live_bytes"] for site in sites)
browser = Browser()


def holds(test, key="live_bytes", of=sites):
    """The memory of sites with a frame in their stack that passes the test."""
    return sum(site[key] for site in of if any(test(frame) for frame in site["stack"]))


def named(name):
    return lambda frame: frame["function"] == name and frame["kind"] == "python"


# Overview
browser.open(page)
cells = browser.js(
    "return [...document.querySelectorAll('tr.sum [data-figure]')].map((one) => [one.dataset.figure, one.textContent])")
figures = dict(cells)
assert figures["live_bytes"] == size_text(totals["live_bytes"]), figures
assert figures["peak_bytes"] == size_text(totals["peak_bytes"]), figures
assert figures["live_blocks"] == f"{totals['live_blocks']:,}", figures
assert size_text(document["residency"]["rss_bytes"]) in browser.text("#residency")
assert browser.driver.title == f"{document['process']['name']} — memstow"
assert "gallery.py" in browser.text("#command")
browser.wait("document.querySelector('.card-body').dataset.ready")
first = browser.text(".ranking li .name")
assert first and browser.text(".ranking li b"), first

# The flame graph has the total of live memory, of memory at the peak, of all allocations, and of blocks.
browser.click("[data-view=flame]")
assert browser.total() == live, (browser.total(), live)
assert browser.details()["total"].startswith(size_text(live))
browser.click("[data-choice=peak]")
assert browser.total() == sum(site["peak_bytes"] for site in peaks["sites"])
browser.click("[data-choice=allocated]")
assert browser.total() > live
browser.click("[data-choice=live]")
assert browser.total() == live
browser.click("[data-choice=blocks]")
assert browser.total() == sum(site["live_blocks"] for site in sites)
browser.click("[data-choice=bytes]")

# Search: the sum of the stacks that contain the text.
browser.type("[type=search]", "shrink")
browser.wait("document.querySelector('.found').dataset.sum")
found = int(browser.js("return document.querySelector('.found').dataset.sum"))
assert found == holds(named("shrink")) > 1_000_000, found
assert size_text(found) in browser.text(".found")
assert browser.total() == live
browser.click("[data-toggle=only-these]")
assert browser.total() == found
link = browser.fragment
browser.type("[type=search]", "")
assert browser.total() == live and "only" not in browser.fragment

# Only Python frames are shown, from the module inwards. The list of calls and a key zoom in.
browser.click("[data-choice=python]")
assert browser.total() == live
module = [name for name, _ in browser.calls() if "gallery.py" in name]
assert module == ["py <module> gallery.py"], browser.calls()
path = ["<module> gallery.py", "visit", "shrink"]
for name in path:
    row = next(row for row in browser.all(".calls .row") if name in row.text)
    row.click()
    browser.press(".flame", "ENTER")
assert browser.text(".flame-view .details h2") == "py shrink"
assert browser.chosen() == holds(named("shrink")), browser.chosen()
assert browser.fragment.count(".") >= len(path) - 1, browser.fragment
zoomed = browser.fragment
browser.press(".flame", "BACKSPACE")
assert browser.text(".flame-view .details h2") == "py visit"
browser.press(".flame", "ESCAPE")
assert browser.chosen() == live and "zoom" not in browser.fragment

# Inverted: the functions that allocate come first, each with the sum of the sites in which it is the innermost. The
# total is the same.
browser.click("[data-toggle=inverted]")
assert browser.total() == live
innermost = {}
for site in sites:
    line = next((frame for frame in site["stack"] if frame["kind"] == "python"
                 and "<frozen importlib" not in frame["file"]), None)
    if line:
        innermost[line["function"],
                  line["file"]] = innermost.get((line["function"], line["file"]), 0) + site["live_bytes"]
names = dict(browser.calls())
for (name, _), value in sorted(innermost.items(), key=lambda item: -item[1])[:2]:
    shown = [figure for key, figure in names.items() if key.startswith(f"py {name}")]
    assert size_text(value) in shown, (name, value, names)
browser.click("[data-toggle=inverted]")
assert browser.frame_at(0) == "all" and browser.frame_at(-1) != "all"
browser.click("[data-toggle=upwards]")
assert browser.total() == live and browser.frame_at(-1) == "all" != browser.frame_at(0)
browser.wait("(({ scrollTop, clientHeight, scrollHeight }) => scrollTop + clientHeight >= scrollHeight - 1)("
             "document.querySelector('.flame'))")

# All calls of one function, which becomes the root.
browser.open(page, zoomed)
assert browser.chosen() == holds(named("shrink"))
next(button for button in browser.all(".actions button") if button.text == "All calls of it").click()
browser.settled()
assert browser.total() == holds(named("shrink")) and "focus=" in browser.fragment

# A link shows the same view again.
browser.open(page, link)
assert browser.total() == found and browser.one("[type=search]").get_attribute("value") == "shrink"

# The table has all sites, the largest first. It can be sorted by another column and filtered, and it shows the stack of
# one site.
browser.open(page, "#sites")
rows = browser.rows()
assert rows[0][0] == size_text(max(site["live_bytes"] for site in sites)), rows[0]
drawn = [row[0] for row in rows]
largest = sorted((site["live_bytes"] for site in sites), reverse=True)
assert drawn == [size_text(value) for value in largest[:len(drawn)]] and len(drawn) >= 20
headers = [header.text for header in browser.all(".rows th")]
column = next(i for i, title in enumerate(headers) if title == "Live, blocks")
browser.all(".rows th button")[column].click()
browser.settled()
blocks = sorted((site["live_blocks"] for site in sites), reverse=True)
assert [row[column] for row in browser.rows()][:20] == [f"{value:,}" for value in blocks[:20]]
assert browser.all(".rows th")[column].get_attribute("aria-sort") == "descending"
browser.type("[type=search]", "gallery.py")
in_gallery = lambda site: any(
    "gallery.py" in (frame[key] or "") for frame in site["stack"] for key in ("function", "file", "module"))
matching = sorted((site["live_blocks"] for site in sites if in_gallery(site)), reverse=True)
count, every = (int(text.replace(",", "")) for text in re.findall(r"[\d,]+", browser.text(".count")))
assert every > count >= len(matching) > 10, (count, every, len(matching)) # the page has sites without live memory, too
drawn = [row[column] for row in browser.rows()]
assert drawn == [f"{value:,}" for value in matching[:len(drawn)]] and len(drawn) > 5, drawn
browser.open_first()
stack = [item.text for item in browser.all(".stack .name")]
assert stack and any("gallery.py" in item.text for item in browser.all(".stack .place")), stack
assert "site=" in browser.fragment

# Blocks: the same list as in the report.
browser.open(page, "#blocks")
listed = sorted((item["size_bytes"] for item in document["large_blocks"] + document["mappings"]), reverse=True)
assert [row[0] for row in browser.rows()] == [size_text(size) for size in listed[:len(browser.rows())]]

# The window may have any width: nothing is wider than it.
for width in (390, 768, 1280, 2560):
    browser.size(width, 900)
    for view in ("overview", "flame", "sites", "blocks"):
        browser.open(page, f"#{view}")
        assert browser.js("return document.documentElement.scrollWidth") <= width, (width, view)
browser.is_clean()
policy = browser.js("return document.querySelector('meta[http-equiv]').content")
assert policy.startswith("default-src 'none'; script-src 'sha256-") and "unsafe" not in policy, policy

# Safari has no requestIdleCallback.
browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument",
                               {"source": "delete window.requestIdleCallback"})
browser.open(page, "#flame")
assert browser.js("return typeof requestIdleCallback") == "undefined" and browser.total() == live
browser.is_clean()
