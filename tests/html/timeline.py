# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 300
"""The page has memory over time: a curve with its marks (html/devices tests the curves of devices). Arrow keys and the
mouse choose a moment, which is said in words; Page Up and Page Down go from mark to mark. The curve has the colours of
the theme, and fits a phone. Names from a file are text. With only a few points there is no curve."""
from _page import Browser, report

import _hostile
from _ledger import MIB, Ledger

S = 10**9


def made(points):
    ledger = Ledger(start_ns=S, end_ns=11 * S, total_peak=0)
    ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(7 * MIB, 1))
    unet, run = ledger.owner(1, "unet", "unet.st"), ledger.owner(3, "first")
    node = ledger.owner(2, "sampler")
    for second in range(points):
        ledger.point(S + second * S, (second % 5 + 1) * MIB, MIB if second == 2 else 0, run, node if second > 2 else 0)
    ledger.mark(S, 1, run)
    ledger.mark(S + 3 * S, 7, unet, moved=MIB)
    ledger.mark(S + 8 * S, 2, run, detail=1)
    ledger.save("x.mst")
    return report("x.mst")


browser = Browser()
browser.open(made(10))
browser.wait("document.querySelector('.timeline').dataset.drawn")
assert browser.text("#history") == "Over time" and len(browser.all(".timeline")) == 1
said = browser.text(".moment")
assert said == "7.0 MiB at most, after 10.0 s; 7.0 MiB at the end, after 10.0 s.", said


def moment(*keys):
    browser.press(".timeline", *keys)
    said = browser.text(".moment")
    assert browser.one(".timeline").get_attribute("aria-valuetext") == said
    return said


assert moment("HOME") == "After 0 ms: 1.0 MiB, 1.0 MiB of it heap, run first, run first began", moment()
assert moment("ARROW_RIGHT", "ARROW_RIGHT") == "After 2.0 s: 4.0 MiB, 3.0 MiB of it heap, 1.0 MiB mapped, run first"
assert moment("PAGE_DOWN") == "After 3.0 s: 4.0 MiB, 4.0 MiB of it heap, run first, node sampler, unet (unet.st) stowed"
assert moment("PAGE_DOWN").endswith(", run first ended (failed)")
assert moment("PAGE_UP").startswith("After 3.0 s") and moment("ARROW_LEFT").startswith("After 2.0 s")
assert moment("END").startswith("After 10.0 s: 7.0 MiB") and moment("ESCAPE").startswith("7.0 MiB at most")

# The mouse chooses a moment. Pixels of the curve have the colour of the theme, also when the theme changes.
browser.js("const host = document.querySelector('.timeline'); host.dispatchEvent(new MouseEvent('mousemove', "
           "{clientX: host.getBoundingClientRect().left + host.clientWidth * .45, clientY: 300, bubbles: true}))")
assert browser.text(".moment").startswith("After 4.0 s: 5.0 MiB"), browser.text(".moment")
PIXEL = """const canvas = document.querySelector('.timeline canvas'), copy = document.createElement('canvas');
const pen = copy.getContext('2d', { willReadFrequently: true });
pen.drawImage(canvas, -canvas.width * .95, 30 - canvas.height);
return [...pen.getImageData(0, 0, 1, 1).data]"""
light = browser.js(PIXEL)
browser.theme(True)
browser.wait(f"(() => {{ {PIXEL} }})().join() !== '{','.join(map(str, light))}'")
browser.size(390, 800)
browser.open(made(10))
browser.wait("document.querySelector('.timeline canvas').getBoundingClientRect().right <= 390")
assert browser.js("return document.documentElement.scrollWidth") <= 390
browser.is_clean()

browser.open(made(2))
assert not browser.all(".timeline")

# Hostile names as marks.
wild = Ledger(start_ns=S, end_ns=2 * S)
for i, name in enumerate(_hostile.NAMES):
    wild.point(S + i * 10**7, (i + 1) * MIB)
    wild.mark(S + i * 10**7, 3, wild.owner(1, name))
wild.save("wild.mst")
browser.open(report("wild.mst"))
browser.press(".timeline", "HOME", *["ARROW_RIGHT"] * len(_hostile.NAMES))
assert not browser.js("return window.hit")
browser.is_clean()
