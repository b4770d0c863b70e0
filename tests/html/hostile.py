# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""Names from a file are text in a page, whatever is in them: markup, scripts, control characters, marks of direction,
bytes that are no UTF-8, a megabyte. None of it runs, none of it hides, and the page asks nobody for anything."""
import pathlib

from _page import Browser, Data, report
from _ledger import Ledger

SCRIPT = "<script>window.hit=1</script>"
NAMES = [SCRIPT, "</script>" + SCRIPT, "<!--" + SCRIPT, "]]>" + SCRIPT, "</title>" + SCRIPT, "</style>" + SCRIPT,
         '"><img src=x onerror="window.hit=2">', "<img src=http://127.0.0.1:9/x.png>", "javascript:window.hit=3",
         "<svg/onload=window.hit=4>", "<iframe srcdoc='<script>parent.hit=5</script>'>", "{{7*7}}${7*7}#{7*7}",
         "a\nb\tc\rd\x1b[2J\x07\x7f", "right \u202e to \u202c left \u2066 and \u200b nothing",
         "\udcff\udcfe no UTF-8 \udce0\udc80", "\\u003cscript\\u003e", "__proto__", "constructor", "x" * (1 << 20), "",
         " ", "&lt;b&gt;&amp;",]
ledger = Ledger(name="<b>\x1b[2J</b>", stacks=2)
ledger.fact(2, "run </script>" + SCRIPT + " \x9b31m")
ledger.fact(4, "<img src=x onerror=window.hit=6>")
outer = ledger.python("outer", "/src/" + SCRIPT, 1)
owners = [ledger.owner(1, name, name) for name in NAMES]
sizes = {}
for number, name in enumerate(NAMES):
    site = ledger.site(stack=ledger.node([outer, ledger.python(name, f"/{name}", number)]),
                       tag=ledger.tag(owners[number]))
    sizes[name] = (number + 1) * 70000
    ledger.count(site, alloc=(sizes[name], 1))
    ledger.block(0x10000 * (number + 1), sizes[name], site)
    ledger.line(kind="SET", owner=owners[number], policy=SCRIPT)
    ledger.line(kind="HELD", owner=owners[number], holders=[name[:200].encode(errors="replace").decode()])
ledger.line(kind="TRIGGER", trigger=1, reason=SCRIPT, text=SCRIPT, owners=1, before_bytes=1)
ledger.line(kind="DECISION", trigger=1, owner=owners[0], policy=SCRIPT, action=SCRIPT, why=SCRIPT, bytes=1)
ledger.save("hostile.mst")
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

# They are there as text: in the list of calls, whole as far as they are kept.
browser.open(page, "#flame?kinds=python")
browser.press(".flame", "ARROW_DOWN")
calls = [name for name, _ in browser.calls()]
assert calls[0].startswith("py &lt;b&gt;&amp;") and len(calls) == 12, calls
browser.type("[type=search]", SCRIPT)
browser.wait("document.querySelector('.found').dataset.sum")
# the outer frame has it, too
assert int(browser.js("return document.querySelector('.found').dataset.sum")) == sum(sizes.values())
browser.open(page, "#sites?find=no%20UTF-8")
row = browser.rows()[0]
assert "\ufffd\ufffd no UTF-8" in row[-1], row
browser.open(page, "#sites?find=right")
assert "right ⟨U+202E⟩ to ⟨U+202C⟩ left ⟨U+2066⟩ and ⟨U+200B⟩ nothing" in browser.rows()[0][-1], browser.rows()[0]

# Nor does the address run anything, or break the page.
for fragment in ("#<img src=x onerror=window.hit=7>",
                 "#flame?zoom=1.2.99999.-1.x&focus=1e9&measure=%00&owner=__proto__",
                 "#sites?sort=__proto__&site=99999999&find=%E0%80", "#constructor?x=1",
                 "#flame?focus=-5&kinds=zzz&unit=zzz"):
    browser.open(page, fragment)
    assert browser.js(SAFE) and not browser.all(".failed"), fragment
browser.is_clean()
