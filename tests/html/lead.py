# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""The page says what is worth looking at, and what to do next, in the words of the text report. It names the place or
the model that holds most, memory that the allocator keeps, and the command to go on with. Names are shown as text. With
--peak or --match it says nothing of this."""
import re

from _page import Browser, Data, report
import _hostile
from _ledger import MIB, Ledger
from support import memstow

one_line = lambda text: text and " ".join(text.split()) # a browser shows several blanks as one
ALL_OF_IT = re.compile(r"memstow report --html .*: all of it in a browser")


def text_lead(*options):
    """Returns {"where": sentence, "next": sentence} of the text report. A sentence is None if it is missing, or
    only advises to make a page."""
    head = memstow("report", "x.mst", *options).stdout.split("\n\n")[0]
    found = {key: one_line(value) for key, value in
             re.findall(r"^  (where|next)  +(.*(?:\n {13}.*)*)", head, re.MULTILINE)}
    return {key: None if ALL_OF_IT.fullmatch(found.get(key, "")) else found.get(key) for key in ("where", "next")}


def page_lead(*options):
    page = Data(report("x.mst", *options)).documents["page"]
    return {key: one_line(page[key]) for key in ("where", "next")}


def shown(browser):
    browser.open("page.html")
    return {key: one_line(browser.text(f".headline [data-lead={key}]")) for key in ("where", "next")}


browser = Browser()
ledger = Ledger()
module = ledger.module("/opt/program")
load = ledger.node([ledger.python("load", "/opt/app.py", 12)])
ledger.count(ledger.site(module, stack=load), alloc=(3 * MIB, 3))
ledger.save("x.mst")
assert page_lead() == text_lead() == {
    "where": "3.0 MiB of 3.0 MiB live (100 %) comes from one place: load app.py:12", "next": None}, page_lead()
assert shown(browser) == {"where": f"{page_lead()['where']}.", "next": None}, shown(browser)
for options in (["--peak"], ["--match=load"]):
    assert page_lead(*options) == {"where": None, "next": None}, options

# The largest model, and what its program needs next.
ledger.count(ledger.site(module, ledger.tag(model=ledger.owner(1, "UNET <b>", "a.st"))), alloc=(4 * MIB, 1))
ledger.save("x.mst")
assert page_lead() == text_lead() == {"where": "4.0 MiB of 7.0 MiB live (57 %) is in model UNET <b> (a.st)",
                                      "next": "memstow owners x.mst: the policy of each model"}, page_lead()
assert shown(browser) == {"where": f"{page_lead()['where']}.", "next": f"Next: {page_lead()['next']}."}
assert browser.text(".headline code") == "memstow owners x.mst"
ledger.owner(3, "run 1")
ledger.save("x.mst")
assert page_lead() == text_lead() and page_lead()["next"] == "memstow leaks x.mst: what grows from run to run"

# The overview of the page of leaks has the sentence `where`. It lacks the sentence `next`, because it has no file that
# this sentence could name.
memstow("leaks", "x.mst", "--html", "-o", "leaks.html", status=None)
leaks = Data("leaks.html").documents["page"]
assert one_line(leaks["where"]) == page_lead()["where"] and leaks["next"] is None, leaks

# Names that are markup.
wild = Ledger()
for name in _hostile.NAMES:
    wild.count(wild.site(wild.module("/opt/program"), wild.tag(model=wild.owner(1, name))), alloc=(MIB, 1))
wild.save("x.mst")
assert page_lead()["where"] == text_lead()["where"]
assert shown(browser)["where"] and not browser.js("return window.hit || document.images.length")
browser.is_clean()
