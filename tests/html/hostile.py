# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 400
"""Names from a file are text in a page, whatever they contain: markup, scripts, control characters, marks of direction,
bytes that are no UTF-8, a megabyte. None of it runs or hides, and the page requests nothing. This holds for the pages
of report, diff, leaks and check. A script that gets into the page all the same is refused."""
import pathlib

import support
from _page import Browser, Data, report, sys
import _hostile
from _hostile import SCRIPT

sizes = _hostile.save("hostile.mst")
page = report("hostile.mst")


def is_text(file):
    """No name stands in the file as it is: all data is letters of base64."""
    text = pathlib.Path(file).read_bytes()
    assert text.count(b"<script") == text.count(b"</script>") and b"window.hit" not in text and b"onerror" not in text
    text.decode()


is_text(page)
data = Data(page)
assert data.figure("live_bytes") == sum(sizes.values())
assert max(map(len, data.texts)) < 1100 and any(one.endswith("… (1048576 bytes)") for one in data.texts)

browser = Browser()
SAFE = (
    "return !window.hit && document.querySelectorAll('img, iframe, svg[onload], main script, header script').length "
    "=== 0 && "
    "document.querySelectorAll('script:not([type=\"application/octet-stream\"])').length === 1")


def shows(page, *views):
    """Opens each view, and a row where it has rows. Returns the text that they show."""
    texts = []
    for view in views:
        browser.open(page, f"#{view}")
        if view in ("sites", "owners", "blocks"):
            browser.open_first()
        browser.js("for (const one of document.querySelectorAll('main details')) one.open = true")
        assert browser.js(SAFE) and not browser.all(".failed"), view
        texts.append(browser.js("return document.body.innerText"))
        assert not any(ord(c) < 32 and c not in "\n\t" or 0x7f <= ord(c) < 0xa0
                       or ord(c) in (0x202e, 0x2066, 0x200b) for c in texts[-1]), view
    return "\n".join(texts)


shows(page, "overview", "flame", "flame?owners=1", "flame?inverted=1&lines=1", "sites", "owners", "blocks", "decisions")
assert browser.driver.title == "<b>␛[2J</b> — memstow", browser.driver.title

# The list of calls shows the names as text. Of a long name it shows only the beginning, because the page has no more of
# it.
browser.open(page, "#flame?kinds=python")
browser.press(".flame", "ARROW_DOWN")
calls = [name for name, _ in browser.calls()]
assert calls[0].startswith("py &lt;b&gt;&amp;") and len(calls) == 12, calls
browser.type("[type=search]", SCRIPT)
browser.wait("document.querySelector('.found').dataset.sum")
# all memory, because the file of the outermost frame has this name, too
assert int(browser.js("return document.querySelector('.found').dataset.sum")) == sum(sizes.values())
browser.open(page, "#sites?find=no%20UTF-8")
row = browser.rows()[0]
assert "\ufffd\ufffd no UTF-8" in row[-1], row
browser.open(page, "#sites?find=right")
assert "right ⟨U+202E⟩ to ⟨U+202C⟩ left ⟨U+2066⟩ and ⟨U+200B⟩ nothing" in browser.rows()[0][-1], browser.rows()[0]

# The address does not run anything or break the page either.
for fragment in ("#<img src=x onerror=window.hit=7>",
                 "#flame?zoom=1.2.99999.-1.x&focus=1e9&measure=%00&owner=__proto__",
                 "#sites?sort=__proto__&site=99999999&find=%E0%80", "#constructor?x=1",
                 "#flame?focus=-5&kinds=zzz&unit=zzz"):
    browser.open(page, fragment)
    assert browser.js(SAFE) and not browser.all(".failed"), fragment
browser.is_clean()

# A comparison, of files whose names are markup.
file = "<img src=x onerror=window.hit=8>.mst"
_hostile.save(file, times=2)
support.memstow("diff", "hostile.mst", file, "--html", "-o", "diff.html")
is_text("diff.html")
shown = shows("diff.html", "overview", "flame", "flame?owners=1", "flame?inverted=1", "sites", "blocks", "decisions")
assert file in shown and SCRIPT in shown and "a␊b␉c␍d␛[2J␇␡" in shown
assert Data("diff.html").figure("after_bytes") == 2 * sum(sizes.values())

# A comparison of two processes, and the page of several files.
_hostile.save("gone.mst", gone=True, pid=1001)
support.memstow("diff", file, "gone.mst", "--html", "-o", "diff.html")
is_text("diff.html")
shown = shows("diff.html", "blocks", "decisions")
assert f"A: {file}" in shown and SCRIPT in shown
IMAGE = '"><img src=x onerror="window.hit=2">'
_hostile.save("hostile.mst", curve=True)
_hostile.save(file, times=2, curve=True)
support.memstow("report", "hostile.mst", file, "--html", "-o", "files.html", "--match=onerror")
is_text("files.html")
shown = shows("files.html", "overview?from=0&to=9")
assert file in shown and f"py{IMAGE} {IMAGE}:6 · {IMAGE} ({IMAGE})" in shown.replace("\n", ""), shown

# Leaks: names and holders of owners that are gone.
_hostile.save("gone.mst", gone=True)
support.memstow("leaks", "gone.mst", "--html", "-o", "leaks.html", status=1)
is_text("leaks.html")
shown = shows("leaks.html", "leaks", "overview", "owners")
assert f"model {SCRIPT} ({SCRIPT}) is gone" in shown and f"Held by\n{SCRIPT}" in shown, shown[:3000]

# A check: the command, and functions that grew.
PROGRAM = """
import os, sys
kept = []
def keep(size): kept.append(bytearray(size))
for name in sys.argv[2:]:
    keep.__code__ = keep.__code__.replace(co_name=name, co_filename="/src/" + name)
    keep(int(sys.argv[1]))
os._exit(0)
"""
pathlib.Path("keep.py").write_text(PROGRAM)
NAMES = [name for name in _hostile.NAMES if name.strip() and len(name) < 1000 and "\udcff" not in name]
check = lambda size, *options, status=0: support.memstow(
    "check", "--baseline=base.txt", "--runs=1", "--warm-up=0", *options, "--", sys.executable, "keep.py", size, *NAMES,
    status=status)
check(1000, "--update-baseline")
check(1_000_000, "--html=check.html", status=1)
is_text("check.html")
shown = shows("check.html", "check", "overview", "flame?kinds=python", "sites")
assert SCRIPT in shown and "<svg/onload=window.hit=4>" in shown, shown[:3000]
browser.is_clean()

# If markup got into a page all the same, the page's policy would refuse to run scripts and to request anything.
browser.open(page)
browser.js("""const add = (name, members) => document.body.append(Object.assign(document.createElement(name), members));
add("script", { textContent: "window.hit = 'script'" });
add("div", { innerHTML: "<img src=x onerror='window.hit = 1'><style>body { display: none }</style>" });
add("img", { src: "http://127.0.0.1:9/x.png" });""")
browser.wait("document.images.length === 2 && [...document.images].every((one) => one.complete)")
assert browser.js("return window.hit === undefined && getComputedStyle(document.body).display !== 'none'")
refused = " ".join(browser.complaints())
assert all(refused.count(f"{what} violates the following Content Security Policy") == count for what, count in (
    ("inline script", 1), ("inline event handler", 1), ("inline style", 1), ("x'", 1), ("x.png'", 1))), refused
