# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""Names from a file are text in a page, whatever they contain: markup, scripts, control characters, marks of direction,
bytes that are no UTF-8, a megabyte. None of it runs or hides, and the page requests nothing."""
import pathlib

from _page import Browser, Data, report
import _hostile
from _hostile import SCRIPT

sizes = _hostile.save("hostile.mst")
page = report("hostile.mst")
text = pathlib.Path(page).read_bytes()
assert text.count(b"<script") == text.count(b"</script>") and b"window.hit" not in text and b"onerror" not in text
text.decode()
data = Data(page)
assert data.figure("live_bytes") == sum(sizes.values())
assert max(map(len, data.texts)) < 1100 and any(one.endswith("… (1048576 bytes)") for one in data.texts)

browser = Browser()
SAFE = (
    "return !window.hit && document.querySelectorAll('img, iframe, svg[onload], main script, header script').length "
    "=== 0 && "
    "document.querySelectorAll('script:not([type=\"application/octet-stream\"])').length === 1")
for view in ("overview", "flame", "flame?owners=1", "flame?inverted=1&lines=1", "sites", "owners", "blocks",
             "decisions"):
    browser.open(page, f"#{view}")
    if view in ("sites", "owners", "blocks"):
        browser.open_first()
    assert browser.js(SAFE), view
    shown = browser.js("return document.body.innerText")
    assert not any(ord(c) < 32 and c not in "\n\t" or 0x7f <= ord(c) < 0xa0
                   or ord(c) in (0x202e, 0x2066, 0x200b) for c in shown), view
assert browser.driver.title == "<b>␛[2J</b> — memstow", browser.driver.title

# The names are shown as text in the list of calls, as far as they are kept.
browser.open(page, "#flame?kinds=python")
browser.press(".flame", "ARROW_DOWN")
calls = [name for name, _ in browser.calls()]
assert calls[0].startswith("py &lt;b&gt;&amp;") and len(calls) == 12, calls
browser.type("[type=search]", SCRIPT)
browser.wait("document.querySelector('.found').dataset.sum")
# also in the outer frame
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
