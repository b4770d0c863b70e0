# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 300
"""The flame graph shows native frames, Python frames or both, as the user chooses. The user also chooses whether
Python's import machinery and the interpreter's own code are shown, and whether frames of one function are told apart by
their lines. These choices also work in the inverted graph. The frames next to the root have the sums that --json and
the page's data give. Blocks are sorted by age, and the button of the theme changes the colours."""
import collections

import support
from _page import Browser, Data, report, size_text, sys
from _ledger import MIB, Ledger

support.track(sys.executable, support.ROOT / "examples/gallery.py", options=["--python-objects"])
page = report("out.mst")
data, sites = Data(page), support.report("out.mst", "--top=1000000")["sites"]
live = data.figure("live_bytes")
stacks = list(zip(data.stacks(), data.columns["sites.live_bytes"]))
browser = Browser()


def short(path):
    names = path.split("/")
    return f"{names[-2]}/{names[-1]}" if names[-1].startswith("__") and len(names) > 1 else names[-1]


def name_of(line, lines):
    """A frame's name in the picture. With `lines`, the name ends with the line's number, so frames of one function may
    have different names."""
    function, file, number, _, kinds = line
    name = f"{function} {short(file)}" if function == "<module>" else function
    return ("py " if "python" in kinds else "") + name + (f":{number}" if lines and number else "")


def first_frames(kinds, imports, interpreter, lines, inverted):
    """[(name, sum)] of the frames that are first in their stacks when hidden frames are left out. The largest sums come
    first."""
    hidden = {kind for kind, shown in (("import", imports), ("interpreter", interpreter)) if not shown}
    sums = collections.Counter()
    for stack, value in stacks:
        visible = [line for line in stack if not line[4] & hidden and (
            kinds == "both" or ("python" in line[4]) == (kinds == "python"))]
        if visible and value:
            function, file, number, module, kind = visible[0 if inverted else -1]
            sums[function, file, number if lines else 0, module, kind] += value
    return [(name_of(line, lines), value) for line, value in sums.most_common()]


seen = []
for kinds, imports, interpreter, lines, inverted in (
        ("native", 0, 0, 0, 0), ("native", 0, 1, 0, 0), ("native", 0, 0, 0, 1), ("native", 0, 1, 0, 1),
        ("python", 0, 0, 0, 1), ("python", 1, 0, 0, 1), ("python", 0, 0, 1, 1), ("both", 1, 1, 0, 1),
        ("both", 0, 0, 0, 0)):
    browser.open(page, "#flame")
    wanted = {"imports": imports, "interpreter": interpreter, "lines": lines, "inverted": inverted}
    browser.click(f"[data-choice={kinds}]")
    for toggle in (name for name, on in wanted.items() if on):
        browser.click(f"[data-toggle={toggle}]")
        assert browser.one(f"[data-toggle={toggle}]").get_attribute("aria-pressed") == "true"
    assert browser.total() == live, (kinds, wanted)
    expected = [(name, size_text(value)) for name, value in first_frames(kinds, imports, interpreter, lines, inverted)]
    shown = browser.calls()
    assert len(shown) == min(12, len(expected)), (kinds, wanted, shown, expected[:13])
    assert [figure for _, figure in shown] == [figure for _, figure in expected[:12]], (shown, expected[:13])
    assert not collections.Counter(shown) - collections.Counter(expected), (shown, expected[:13]) # equals in any order
    seen.append(shown)
assert seen[0] != seen[1] and seen[2] != seen[3] and seen[4] != seen[5] and seen[4] != seen[6], "they choose nothing"

# With all frames shown, native frames are those of --json, which has the frames of a stack innermost first.
sums = collections.Counter()
for site in sites:
    native = [frame for frame in site["stack"] if frame["kind"] == "native"]
    if native:
        sums[native[0]["function"]] += site["live_bytes"]
browser.open(page, "#flame?kinds=native&interpreter=1&imports=1&inverted=1")
by_name = collections.Counter()
for name, value in first_frames("native", 1, 1, 0, 1):
    by_name[name] += value
for name, value in sums.most_common(5):
    if name:
        assert by_name[name] == value, (name, value, by_name[name])

# The theme's button switches to the other colours, and back. The chosen colours stay when the view changes.
PIXEL = """const canvas = document.querySelector('.flame canvas'), copy = document.createElement('canvas');
const pen = copy.getContext('2d', { willReadFrequently: true });
pen.drawImage(canvas, -Math.round(canvas.width / 2), -12);
return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).reduce((a, b) => a + b)"""
browser.open(page, "#flame")
light = browser.js(PIXEL)
browser.click("#theme")
dark = browser.js(PIXEL)
assert browser.js("return document.documentElement.dataset.theme") == "dark" and dark < light - 150, (light, dark)
browser.click("[data-view=overview]")
browser.click("[data-view=flame]")
assert browser.js(PIXEL) == dark
browser.click("#theme")
assert browser.js(PIXEL) == light
browser.is_clean()

# Blocks by age: the oldest first, then the youngest.
ledger = Ledger(start_ns=10**9, end_ns=100 * 10**9)
births = {1: 50, 2: 3, 3: 90, 4: 20, 5: 70} # MiB: seconds
for size, second in births.items():
    ledger.block(0x1000000 * size, size * MIB, birth_ns=second * 10**9)
ledger.mapping(0x90000000, 6 * MIB, birth_ns=30 * 10**9)
births[6] = 30
ledger.save("blocks.mst")
browser.open(report("blocks.mst"), "#blocks?sort=age")
oldest = sorted(births, key=births.get)
assert [row[0] for row in browser.rows()] == [size_text(size * MIB) for size in oldest], browser.rows()
next(head for head in browser.all(".rows th button") if head.text == "Age").click()
browser.settled()
assert [row[0] for row in browser.rows()] == [size_text(size * MIB) for size in reversed(oldest)], browser.rows()
assert "sort=-age" in browser.fragment
browser.is_clean()
