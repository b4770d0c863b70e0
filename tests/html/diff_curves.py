# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0
"""A comparison has memory over time in A and in B, also on CUDA devices (simulated, a test double). The curves have the
same scale of bytes, and each has its own scale of time. Their data is the history of each file's --json. A side with
few points has no curve."""
import support
from _devices import record
from _page import Browser, Data

from _ledger import MIB, Ledger

S = 10**9


def made(file, factor, points):
    ledger = Ledger(start_ns=S, end_ns=(1 + points) * S, total_peak=0)
    ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(3 * factor * MIB, 1))
    run = ledger.owner(3, "<b>first")
    for second in range(points):
        ledger.point(S + second * S, (second % 3 + 1) * factor * MIB, MIB if second == 2 else 0, run)
    ledger.mark(S, 1, run)
    ledger.save(file)


def page(a, b, to):
    support.memstow("diff", a, b, "--html", "-o", to)
    return to


made("a.mst", 1, 6)
made("b.mst", 4, 12)
made("few.mst", 1, 1)
shown = Data(page("a.mst", "b.mst", "page.html"))
for side in ("a", "b"):
    assert shown.documents["curves"][side]["history"] == support.report(f"{side}.mst")["history"], side

browser = Browser()
browser.open("page.html")
browser.wait("document.querySelector('.timeline').dataset.drawn")
sides = browser.js("return [...document.querySelectorAll('.timeline')].map((one) => [one.getAttribute('aria-label'), "
                   "one.getAttribute('aria-valuetext')])")
WORDS = "{} MiB at most, after 2.0 s; {} MiB at the end, after {} s."
assert sides == [["A, Live memory over time", WORDS.format("4.0", "3.0", "6.0")],
                 ["B, Live memory over time", WORDS.format("13.0", "12.0", "12.0")]], sides
browser.press(".timeline", "HOME")
said = browser.text(".moment")
assert said == "After 0 ms: 1.0 MiB, 1.0 MiB of it heap, run <b>first began", said

# The colour of one pixel of the canvas: at a share of its width (arguments[1]), and 60 pixels below its upper edge.
# This height stands for 0.7 of the scale.
PIXEL = """const canvas = document.querySelectorAll('.timeline canvas')[arguments[0]];
const copy = document.createElement('canvas'), pen = copy.getContext('2d', { willReadFrequently: true });
pen.drawImage(canvas, -canvas.width * arguments[1], -60);
return [...pen.getImageData(0, 0, 1, 1).data].join()"""
nothing, low, high = browser.js(PIXEL, 0, 0.1), browser.js(PIXEL, 0, 0.45), browser.js(PIXEL, 1, 0.95)
assert nothing == low != high, "A's largest is less than a third of the scale, B's is all of it"
browser.size(390, 800)
browser.open("page.html")
browser.wait("document.querySelector('.timeline').dataset.drawn")
assert browser.js("return document.documentElement.scrollWidth") <= 390
browser.is_clean()

browser.open(page("few.mst", "b.mst", "one.html"))
assert [one.get_attribute("aria-label") for one in browser.all(".timeline")] == ["B, Live memory over time"]
browser.open(page("few.mst", "few.mst", "none.html"))
assert not browser.all(".timeline") and not browser.all("#history")

record("out.mst", "host")
browser.open(page("out.mst", "out.mst", "devices.html"))
assert [one.get_attribute("aria-label") for one in browser.all(".timeline")] == [
    f"{side}, {memory} over time" for memory in ("Live memory", "CUDA device 0", "CUDA device 1") for side in "AB"]
