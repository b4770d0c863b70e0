# long
# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0 pip:axe-core-python==0.1.0
# timeout: 900
"""axe, a checker of accessibility, finds no fault in any view of any page: reports with curves, ranges of time, owners
and devices; leaks; a comparison; a check. It checks each view in light, in dark and on a phone, and with a row opened
if the view has rows."""
import importlib.util, json, pathlib

import _layout
from _page import Browser

AXE = (pathlib.Path(importlib.util.find_spec("axe_core_python").origin).parent / "axe.min.js").read_text()
RUN = ("const done = arguments[arguments.length - 1]; axe.run(document, {resultTypes: ['violations']}).then((found) => "
       "done(found.violations))")
LOOKS = ((1280, "light"), (1280, "dark"), (390, "light"))
PARTS = {".timeline", ".range", ".devices .device", ".leak .curve", ".rows", ".flame", "[data-verdict]", ".trigger",
         ".details .stack", "[data-lead]"} # axe must have judged each of them somewhere
seen = set()
browser = Browser()


def judge(where):
    seen.update(one for one in PARTS if browser.all(one))
    for fault in browser.driver.execute_async_script(RUN):
        places = [node["html"][:150] for node in fault["nodes"][:3]]
        raise AssertionError(f"{where}: {fault['id']}: {fault['help']}: {places} "
                             f"{json.dumps(fault['nodes'][0].get('any', []))[:400]}")


def look_at(name, page, addresses):
    """Judges each view of a page in each look."""
    browser.open(page)
    browser.js(AXE)
    for address in addresses:
        browser.js("location.hash = arguments[0]", address or "#")
        for width, theme in LOOKS:
            browser.size(width, 900)
            browser.theme(theme == "dark")
            _layout.settled(browser)
            judge(f"{name}{address} at {width}, {theme}")
        if browser.all(".open") and "row=" not in address and "site=" not in address:
            browser.open_first()
            judge(f"{name}{address}, its first row")


for made in _layout.pages():
    look_at(*made)
assert seen == PARTS, PARTS - seen
browser.is_clean()
