# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""The page of a check: the verdict and the comparison as in --json, and the report of the last run. Markdown and JUnit
name the page."""
import json, pathlib
import xml.etree.ElementTree

import support
from _page import Browser, Data, size_text, sys

program = pathlib.Path("program.py")
program.write_text("""
import os, subprocess, sys
kept = []
def cache(size): kept.append(bytearray(size))
cache(int(sys.argv[1]))
subprocess.run([sys.executable, "-c", "pass"])
os._exit(0)
""")


def check(size, *options, status=0):
    return support.memstow("check", "--baseline=base.txt", "--runs=2", "--warm-up=0", *options, "--", sys.executable,
                           program, size, status=status)


check(2_000_000, "--update-baseline")
check(30_000_000, "--html=page.html", "--json=o.json", "--markdown=o.md", "--junit=o.xml", status=1)
document = json.loads(pathlib.Path("o.json").read_text())
page = Data("page.html")
assert page.documents["check"] == document and document["result"] == "fail"
assert page.documents["report"]["totals"]["live_bytes"] > 30_000_000 # the process that holds most, of two
assert "Details: ` page.html `" in pathlib.Path("o.md").read_text()
properties = {one.get("name"): one.get("value") for one in xml.etree.ElementTree.parse("o.xml").iter("property")}
assert properties["page"] == "page.html" and "program.py" in properties["command"], properties

browser = Browser()
browser.open("page.html")
assert browser.one("[aria-current]").text == "Check"
assert browser.js("return document.querySelector('[data-result]').dataset.result") == "fail"
rows = [[cell.text for cell in row.find_elements("css selector", "th, td")] for row in browser.all("tr[data-verdict]")]
assert len(rows) == len(document["findings"]) and rows[0][0] == "over", rows[:2]
total = next(one for one in document["findings"] if one["kind"] == "total")
assert any("+" + size_text(total["growth_bytes"]) in row for row in rows), rows
browser.click("[data-view=flame]")
assert browser.total() == page.figure("live_bytes")
browser.is_clean()

# A verdict without a fault has a page, too. Without --html there is no page.
check(2_000_000, "--html=fine.html", "--markdown=fine.md")
assert Data("fine.html").documents["check"]["result"] == "pass"
check(2_000_000, "--markdown=none.md")
assert "Details" not in pathlib.Path("none.md").read_text()
assert "Details: ` fine.html `" in pathlib.Path("fine.md").read_text()
for words in (["--html="], ["--html=-"], ["--html=x.html", "--update-baseline"]):
    check(1, *words, status=2)
assert check(2_000_000, "--html=no/such.html", status=3).stderr.count("no/such.html") == 1
