# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""A comparison in a browser: both totals, growth and shrinkage in the flame graph and the table, as in --json."""
import json

import support
from _page import Browser, size_text, sys

PROGRAM = """
import os, sys
kept = []
def grow(): kept.append(bytearray(5_000_000) if later else bytearray(1_000_000))
def shrink(): kept.append(bytearray(200_000) if later else bytearray(3_000_000))
def stay(): kept.append(bytearray(700_000))
later = sys.argv[1] == "later"
for one in (grow, shrink, stay): one()
os._exit(0)
"""
for which in ("first", "later"):
    support.track(sys.executable, "-c", PROGRAM, which, file=f"{which}.mst")
document = json.loads(support.memstow("diff", "first.mst", "later.mst", "--json", "--by=site", "--top=1000000").stdout)
support.memstow("diff", "first.mst", "later.mst", "--html", "-o", "page.html")
rows = document["rows"]


def change(name):
    return sum(row["growth_bytes"] for row in rows if any(frame["function"] == name for frame in row["stack"]))


assert change("grow") == 4_000_000 and change("shrink") == -2_800_000 and change("stay") == 0
browser = Browser()
browser.open("page.html")
grown = "+" + size_text(document["growth_bytes"])
assert browser.text("[data-figure=change_live_bytes]") == grown, grown
assert browser.text("[data-figure=a_live_bytes]") == size_text(document["a"]["live_bytes"])
assert "grew by" in browser.text(".headline")
browser.wait("document.querySelector('.card-body').dataset.ready")
assert browser.text(".ranking li b") == "+" + size_text(4_000_000)

browser.click("[data-view=flame]")
assert browser.total() == document["growth_bytes"]
browser.click("[data-choice=python]")
next(row for row in browser.all(".calls .row") if "<module>" in row.text).click()
calls = dict(browser.calls())
assert calls["py grow"] == "+" + size_text(4_000_000) and calls["py shrink"] == size_text(-2_800_000), calls
assert "py stay" not in calls
COLOUR = """const canvas = document.querySelector('.flame canvas'), copy = document.createElement('canvas');
const pen = copy.getContext('2d', { willReadFrequently: true });
pen.drawImage(canvas, -Math.round(canvas.width * arguments[0]), -58);
return [...pen.getImageData(0, 0, 1, 1).data]"""
red, _, blue, _ = browser.js(COLOUR, 0.1) # grow is the widest, at the left of the third row
assert red > blue + 20, (red, blue)
red, _, blue, _ = browser.js(COLOUR, 0.9) # shrink, at the right
assert blue > red + 20, (red, blue)
browser.click("[data-choice=before]")
assert browser.total() == document["a"]["live_bytes"]
browser.click("[data-choice=after]")
browser.click("[data-choice=blocks]")
assert browser.total() == document["b"]["live_blocks"]

browser.open("page.html", "#sites")
assert [row[0] for row in browser.rows()][:2] == ["+" + size_text(4_000_000), size_text(-2_800_000)]
browser.is_clean()
