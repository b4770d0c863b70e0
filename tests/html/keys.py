# needs: deb:chromium deb:chromium-driver deb:poppler-utils pip:selenium==4.51.0
# timeout: 300
"""A page works with keys and screen readers (html/accessible has axe's judgement). Keys do everything that a mouse does
in the flame graph, and the choice is announced. On paper the page is light."""
import base64, pathlib

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import support
from _page import Browser, report
from _decisions import CLIP, clean
from _ledger import MIB

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
page = report("a.mst")
browser = Browser()

# The flame graph needs no mouse. Keys choose the largest inner frame, the next or previous frame, and the outer frame.
# They also zoom in, zoom out, and show the whole graph again. The chosen frame is announced.
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

# On paper each view has its text, and nothing that only a screen needs. The page is light, also if the screen is dark.
browser.theme(True)
for view, words in (("overview", ["are live in", "What holds most", "load", "Host heap"]),
                    ("flame", ["Flame graph", "Holds", "py main"]),
                    ("sites", ["3.0 MiB", "decode", "Where", "30 sites"]),
                    ("owners", ["clip.safetensors", "Live", "owners"])):
    browser.open(page, f"#{view}")
    pdf = base64.b64decode(browser.driver.execute_cdp_cmd("Page.printToPDF", {})["data"])
    pathlib.Path("page.pdf").write_bytes(pdf)
    text = support.run("pdftotext", "-layout", "page.pdf", "-").stdout
    assert all(word in text for word in words), (view, text)
    assert "Copy as text" not in text and "Inverted" not in text and "Decisions" not in text, (view, text)
browser.js("dispatchEvent(new Event('beforeprint'))")
assert browser.js("return document.documentElement.dataset.theme") == "light"
browser.js("dispatchEvent(new Event('afterprint'))")
assert browser.js("return document.documentElement.dataset.theme") in ("", None)
browser.is_clean()
