"""Pages with every view, and their faults of layout: what overlaps, is cut off, or is wider than the window.

In: a folder to work in. Out: pages with the addresses of their views; and the faults of what a browser shows."""
import collections, pathlib, sys

import support
import _devices
from _leaking import record
from _page import report
from _decisions import CACHE, CLIP, LINES, clean
from _ledger import MIB

WIDTHS, THEMES = (1280, 2560, 390), ("light", "dark")
S = 10**9
LONG = "a model with a long name, as people and tools give them, " * 4 + "fp8_e4m3fn.safetensors"
REPORTED = ["", "#overview?from=0.2&to=0.9", "#flame", "#flame?find=shrink&kinds=python", "#flame?inverted=1&lines=1",
            "#sites", "#sites?site=3&find=py", "#blocks", "#blocks?row=1"]


def gallery():
    """A Python program."""
    support.track(sys.executable, support.ROOT / "examples/gallery.py", options=["--python-objects"],
                  file="gallery.mst")
    return report("gallery.mst", to="gallery.html"), REPORTED


def models():
    """Owners with policies and decisions, marks that stand close together, and long names."""
    ledger = clean()
    long, run = ledger.owner(1, LONG, origin="/models/" + "deep/" * 30 + "x.safetensors"), ledger.owner(3, "picture 1")
    work, take = ledger.python("work", "/src/" + "folder/" * 30 + "work.py", 3), ledger.python(
        "a_function_of_a_long_name" * 8, "/src/work.py", 9)
    stack, tags = ledger.node([work, take]), [ledger.tag(owner, run=run) for owner in (long, CLIP, CACHE)]
    for number, tag in enumerate(tags):
        ledger.count(ledger.site(stack=stack, tag=tag), alloc=((20 + number) * MIB, 3))
    for tenth in range(100):
        ledger.point(S + tenth * S // 50, (tenth % 37 + 20) * MIB, run=run)
    for tenth, kind, owner in ((1, 1, run), (2, 3, long), (3, 3, CLIP), (3, 3, CACHE), (50, 7, long), (51, 8, CLIP),
                               (99, 2, run)):
        ledger.mark(S + tenth * S // 50, kind, owner, moved=MIB if kind > 6 else 0)
    for tenth in (20, 50, 99):
        ledger.owner_mark(S + tenth * S // 50, long, tenth * MIB)
    ledger.save("models.mst")
    return report("models.mst", to="models.html"), ["", "#overview?from=0.1&to=1.5", "#flame?owners=1", "#owners",
                                                    "#owners?row=0", "#owners?row=6", "#decisions", "#sites?site=1"]


def devices():
    """Two CUDA devices of the simulated driver."""
    _devices.record("devices.mst", "host")
    return report("devices.mst", to="devices.html"), ["", "#overview?from=0&to=0.1", "#flame?place=device", "#owners",
                                                      "#owners?row=0"]


def leaks():
    record("leaks.mst")
    support.memstow("leaks", "leaks.mst", "--html", "-o", "leaks.html", status=1)
    return pathlib.Path("leaks.html"), ["", "#overview", "#owners"]


def comparison():
    support.memstow("diff", "leaks.mst", "gallery.mst", "--html", "-o", "diff.html")
    return pathlib.Path("diff.html"), ["", "#flame", "#sites", "#sites?site=3", "#owners", "#owners?row=0", "#blocks",
                                       "#blocks?row=0"]


def changes():
    """Two snapshots of one process, with blocks and triggers between them; and the page of both."""
    for number, lines in enumerate((LINES[:3], LINES)):
        ledger = clean(lines)
        ledger.header.update(end_ns=(10 + 5 * number) * S)
        tag = ledger.tag(ledger.owner(1, LONG, origin="/models/" + "deep/" * 30 + "x.safetensors"))
        for place in range(12):
            name, file = "a_function_of_a_long_name" * (place % 8 + 1), f"/src/{'folder/' * place}work.py"
            line = ledger.python(name, file, place)
            site = ledger.site(stack=ledger.node([line]), tag=tag if place % 2 else 0)
            ledger.count(site, alloc=((20 + place * (number + 1)) * MIB, 3))
            if place % 3 != 1 + number:
                ledger.block(0x7f0000000000 + place * MIB, (20 + place) * MIB, site, (2 + place % 3 * 10 * number) * S)
        for second in range(10):
            ledger.point(S + second * S, (second * 7 % 5 + 1) * MIB)
        ledger.save(f"{number}.mst")
    support.memstow("diff", "0.mst", "1.mst", "--html", "-o", "changes.html")
    return pathlib.Path("changes.html"), ["", "#blocks", "#blocks?row=1", "#decisions"]


def snapshots():
    """The page of several snapshots, with a range of time that has all of them."""
    support.memstow("report", "0.mst", "1.mst", "--html", "-o", "snapshots.html")
    return pathlib.Path("snapshots.html"), ["#overview?from=1&to=14"]


def check():
    command = ["--runs=1", "--warm-up=0", "--baseline=base.txt", "--", sys.executable, "-c"]
    support.memstow("check", "--update-baseline", *command, "import os; os._exit(0)")
    support.memstow("check", "--html=check.html", *command,
                    "import os; kept = [bytearray(30_000_000), bytearray(9_000_000)]; os._exit(0)", status=1)
    return pathlib.Path("check.html"), [""]


def pages():
    """Makes the pages. Yields (name, page, addresses of its views)."""
    for make in (gallery, models, devices, leaks, comparison, changes, snapshots, check):
        yield make.__name__, *make()


# ---- faults

# A box is a line of an element's text, a control or a picture. Boxes of two elements may overlap only if one of the
# elements contains the other. Only the visible part of a box counts, not what is cut off or scrolled away.
FAULTS = """
const LEAST = 2; // pixels: lines of text may touch
const PICTURES = "canvas, svg, input, textarea";
const FIGURE = /^[+−]?[\\d.,]+ (B|KiB|MiB|GiB|%)$/;
const faults = [];
const root = document.documentElement;
if (root.scrollWidth > innerWidth) faults.push(`the page is ${root.scrollWidth} pixels wide`);
const name = (one) => `${one.tagName.toLowerCase()}${one.className && one.className.baseVal === undefined
    ? "." + one.className : ""} "${one.textContent.slice(0, 40)}"`;
const style = new Map();
const styleOf = (one) => style.get(one) ?? style.set(one, getComputedStyle(one)).get(one);
const isHidden = (one) => one.closest("[hidden], .off-screen, .skip, .tip, noscript, script, style, .gap") ||
    !one.checkVisibility({ visibilityProperty: true }) || !one.getClientRects().length;
const cutBy = (one, axis) => /auto|scroll|hidden|clip/.test(styleOf(one)[`overflow${axis}`]);
const scrolls = (one) => /auto|scroll/.test(styleOf(one).overflowX + styleOf(one).overflowY);

/** What of the rectangle can be seen. Text that is cut, and does not say so, is a fault; so is text that is outside of
 * what it stands in. */
function seen(one, rect, isText) {
    let { left, top, right, bottom } = rect;
    let isOutside = false;
    for (let box = one; box && box !== document.body; box = box.parentElement) {
        if (styleOf(box).position === "fixed" || styleOf(box).display === "inline") continue;
        const edge = box.getBoundingClientRect();
        const cuts = [cutBy(box, "X") && (left < edge.left - 1 || right > edge.right + 1),
            cutBy(box, "Y") && (top < edge.top - 1 || bottom > edge.bottom + 1)];
        if (isText && (cuts[0] || cuts[1]) && !scrolls(box) && styleOf(box).textOverflow !== "ellipsis")
            faults.push(`${name(one)} is cut off by ${name(box)}`);
        if (isText && !isOutside && !cutBy(box, "X") && (left < edge.left - 1 || right > edge.right + 1)) {
            isOutside = true;
            faults.push(`${name(one)} is outside of ${name(box)}`);
        }
        if (cutBy(box, "X")) [left, right] = [Math.max(left, edge.left), Math.min(right, edge.right)];
        if (cutBy(box, "Y")) [top, bottom] = [Math.max(top, edge.top), Math.min(bottom, edge.bottom)];
    }
    return { left, top, right, bottom };
}

function rectsOf(one) {
    if (one.matches(PICTURES)) return [one.getBoundingClientRect()];
    const rects = [];
    for (const text of one.childNodes) {
        if (text.nodeType !== Node.TEXT_NODE || !text.data.trim()) continue;
        const range = document.createRange();
        range.selectNodeContents(text);
        const lines = [...range.getClientRects()].map((line) => Object.assign(line, { isText: true }));
        const widths = lines.reduce((sum, { width }) => sum + width, 0);
        if (lines.length > 1 && FIGURE.test(text.data.trim())) faults.push(`${name(one)} is broken`);
        if (lines.length > 3 && widths / lines.length < 50) faults.push(`${name(one)} is squeezed`);
        rects.push(...lines);
    }
    return one.matches("button") ? [one.getBoundingClientRect(), ...rects] : rects;
}

const boxes = [];
for (const one of document.body.querySelectorAll("*")) {
    if (isHidden(one) || one.parentElement.closest("svg")) continue;
    for (const rect of rectsOf(one)) {
        const box = seen(one, rect, rect.isText);
        if (box.right - box.left > 1 && box.bottom - box.top > 1) boxes.push([one, box]);
    }
}
for (const [one, a] of boxes)
    if (a.left < -1 || a.right > innerWidth + 1) faults.push(`${name(one)} is outside of the window`);
for (let i = 0; i < boxes.length; i++)
    for (let j = i + 1; j < boxes.length; j++) {
        const [[one, a], [other, b]] = [boxes[i], boxes[j]];
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > LEAST && down > LEAST && !one.contains(other) && !other.contains(one))
            faults.push(`${name(one)} and ${name(other)} overlap`);
    }
return [[...new Set(faults)], boxes.length];
"""


def settled(browser):
    """Waits until everything of the view is drawn, also the list in the overview, which is filled when the call stacks
    are there."""
    browser.settled()
    browser.wait("(() => { const list = document.querySelector('.card-body'); return !list || list.dataset.ready; })()")
    browser.wait("[...document.querySelectorAll('.timeline')].every((one) => one.dataset.drawn)")
    browser.js("for (const one of document.querySelectorAll('main details')) one.open = true")


def states(browser, page, addresses, themes):
    """Opens each address at each width and in each theme of themes(index of the address). Yields (address, width,
    theme)."""
    browser.open(page)
    for number, address in enumerate(addresses):
        browser.js("location.hash = arguments[0]", address or "#")
        for width in WIDTHS:
            browser.size(width, 900)
            for theme in themes(number):
                browser.theme(theme == "dark")
                settled(browser)
                yield address, width, theme


def faults(browser):
    """The faults of what the browser shows, and the number of boxes that were compared."""
    return browser.js(FAULTS)


def collect(browser, made, themes):
    """All faults of the pages, in these themes of each view: fault → where it was seen."""
    found = collections.defaultdict(list)
    for name, page, addresses in made:
        for address, width, theme in states(browser, page, addresses, themes):
            said, boxes = faults(browser)
            assert boxes > 10, (name, address, width, boxes)
            for fault in said:
                found[fault].append(f"{name}{address} at {width}, {theme}")
    return found


def none_in(browser, themes):
    """Asserts that no page has a fault in these themes of each view."""
    found = collect(browser, pages(), themes)
    assert not found, "\n".join(f"{fault}: {places[0]} and {len(places) - 1} more" for fault, places in found.items())
    browser.is_clean()
