# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:axe-core-python==0.1.0
# timeout: 300
"""A page works with keys and screen readers. axe finds no fault in any view: light, dark or narrow. Keys do everything
that a mouse does in the flame graph, and the choice is announced. On paper the page is light."""
import importlib.util, json, pathlib

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import support
from _page import Browser, report
from _decisions import CLIP, clean
from _ledger import MIB

AXE = pathlib.Path(importlib.util.find_spec("axe_core_python").origin).parent / "axe.min.js"
RUN = ("const done = arguments[arguments.length - 1]; axe.run(document, {resultTypes: ['violations']}).then((found) => "
       "done(found.violations))")

ledger = clean()
libx = ledger.module("/lib/libx.so", bias=0x10000)
names = ["main", "load", "decode", "keep"]
frames = [ledger.python(name, "/src/work.py", line) for line, name in enumerate(names)] + [ledger.frame(0x11200, libx)]
stacks = [ledger.node(frames[:2]), ledger.node([*frames[:3], frames[4]]), ledger.node([frames[0], frames[3]])]
tag = ledger.tag(CLIP)
for number in range(30):
    site = ledger.site(stack=stacks[number % 3], tag=tag * (number % 2), module=libx)
    ledger.count(site, alloc=(MIB * (1 + number % 3), 1))
    ledger.block(0x100000 * (number + 1), MIB, site)
ledger.save("a.mst")
ledger.count(ledger.site(stack=stacks[0]), alloc=(9 * MIB, 3))
ledger.save("b.mst")
page = report("b.mst")
support.memstow("diff", "a.mst", "b.mst", "--html", "-o", "diff.html")
support.memstow("leaks", "b.mst", "--html", "-o", "leaks.html", status=None)
browser = Browser()


def audit(file, fragment):
    browser.open(file, fragment)
    if browser.all(".open"):
        browser.open_first()
    browser.js(AXE.read_text())
    for fault in browser.driver.execute_async_script(RUN):
        places = [node["html"][:150] for node in fault["nodes"][:3]]
        raise AssertionError(
            f"{file.name if hasattr(file, 'name') else file}{fragment}: {fault['id']}: {fault['help']}: {places} "
            f"{json.dumps(fault['nodes'][0].get('any', []))[:400]}")


views = [(page, f"#{view}") for view in ("overview", "flame?find=load", "flame?owners=1&kinds=python", "sites",
                                         "owners", "blocks", "decisions")]
views += [("diff.html", "#overview"), ("diff.html", "#flame"), ("leaks.html", "")]
for dark in (False, True):
    browser.theme(dark)
    for file, fragment in views:
        audit(file, fragment)
browser.size(390, 800)
for file, fragment in views:
    audit(file, fragment)
browser.size(1280, 900)
browser.theme(False)

# The flame graph by keys alone: into the largest frame, to the next one, back; zoom, out, all. The choice is announced.
browser.open(page, "#flame?kinds=python")
chosen = lambda: browser.text(".flame-view .details h2")
said = lambda: browser.text("[aria-live]")
browser.js("document.querySelector('.flame').focus()")
steps = [("ARROW_DOWN", "py main"), ("ARROW_DOWN", "py load"), ("ARROW_RIGHT", "py keep"), ("ARROW_LEFT", "py load"),
         ("ARROW_LEFT", "py load"), ("ARROW_DOWN", "py decode"), ("ARROW_DOWN", "py decode"), ("ARROW_UP", "py load")]
for key, name in steps:
    browser.press(".flame", key)
    assert chosen() == name and said().startswith(name), (key, name, chosen(), said())
assert "MiB" in said() and "%" in said()
assert "zoom" not in browser.fragment
browser.press(".flame", "ENTER")
assert "zoom=" in browser.fragment and chosen() == "py load"
browser.press(".flame", "BACKSPACE")
assert chosen() == "py main"
browser.press(".flame", "ESCAPE")
assert chosen() == "all" and "zoom" not in browser.fragment
browser.click("[data-toggle=upwards]")
browser.press(".flame", "ARROW_UP")
assert chosen() == "py main"

# Tab goes through the controls in order, and the focus is always visible.
browser.open(page, "#flame")
browser.js("document.body.focus()")
order = []
for _ in range(24):
    ActionChains(browser.driver).send_keys(Keys.TAB).perform()
    order.append(browser.js("const one = document.activeElement; return one.dataset.view ?? one.dataset.choice ?? "
                            "one.dataset.toggle ?? one.type ?? one.className"))
    assert browser.js("return getComputedStyle(document.activeElement).outlineStyle !== 'none'"), order[-1]
wanted = ["overview", "flame", "sites", "live", "allocated", "bytes", "blocks", "both", "python", "inverted", "upwards",
          "search", "flame"]
rest = iter(order)
assert all(any(one == name for one in rest) for name in wanted), order

# A chosen button keeps the focus, and is announced as chosen.
browser.js("document.querySelector('[data-choice=blocks]').focus()")
ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
browser.settled()
assert browser.js("return document.activeElement.dataset.choice") == "blocks"
assert browser.one("[data-choice=blocks]").get_attribute("aria-pressed") == "true"

# A printed page is light, also if the screen is dark.
browser.theme(True)
browser.open(page, "#overview")
pdf = browser.driver.execute_cdp_cmd("Page.printToPDF", {})
assert len(pdf["data"]) > 10000
browser.js("dispatchEvent(new Event('beforeprint'))")
assert browser.js("return document.documentElement.dataset.theme") == "light"
browser.js("dispatchEvent(new Event('afterprint'))")
assert browser.js("return document.documentElement.dataset.theme") in ("", None)
browser.is_clean()
