# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 300
"""A range of time in the overview, chosen with the mouse, with keys, or by a link. The page shows memory at both ends
and its maximum in the range, what happened, the owners at both ends, and the large blocks that were allocated in the
range. The figures are those of --json. The page says what the file does not know."""
import support
from _page import Browser, report, size_text
from _ledger import MIB, Ledger

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

S = 10**9


def made():
    ledger = Ledger(start_ns=S, end_ns=11 * S, total_peak=0)
    ledger.count(ledger.site(ledger.module("/opt/program")), alloc=(7 * MIB, 1))
    early, late, run = ledger.owner(1, "early", "e.st"), ledger.owner(1, "<b>late"), ledger.owner(3, "first")
    keep = ledger.site(stack=ledger.node([ledger.python("keep", "/src/work.py", 3)]), tag=ledger.tag(late))
    ledger.count(keep, alloc=(3 * MIB, 2))
    for second in range(10):
        ledger.point(S + second * S, (second * 7 % 5 + 1) * MIB, MIB if second > 5 else 0, run)
    ledger.mark(S, 1, run)
    ledger.mark(4 * S, 3, late)
    ledger.mark(6 * S, 7, early, moved=MIB, rss=9 * MIB)
    ledger.mark(9 * S, 2, run, detail=1)
    for second, owner, live in ((3, early, 4), (6, early, 1), (6, late, 2), (9, late, 3)):
        ledger.owner_mark(second * S, owner, live * MIB, MIB if live == 1 else 0)
    for number, second in enumerate((2, 5, 6, 9)):
        ledger.block(0x10000 * (number + 1), (number + 1) * MIB, site=keep if number < 3 else 0, birth_ns=second * S)
    ledger.save("x.mst")
    return report("x.mst"), support.report("x.mst", "--top=1000")


page, document = made()
history = document["history"]
live = [host + mapped for host, mapped in zip(history["host_bytes"], history["mapped_bytes"])]


def at(second, column=live):
    """What the curve has at a second: the value of a point holds until the next."""
    return next(value for time, value in reversed(list(zip(history["seconds"], column))) if time <= second)


def expected(low, high, column=live):
    """The figures of a row: memory at the beginning, memory at the end, the change, and the maximum."""
    inside = [value for time, value in zip(history["seconds"], column) if low < time <= high]
    change = at(high, column) - at(low, column)
    return [size_text(at(low, column)), size_text(at(high, column)), ("+" if change > 0 else "") + size_text(change),
            size_text(max([at(low, column), *inside]))]


def shown(name="Live memory"):
    return browser.js("return [...document.querySelectorAll(`tr[data-curve='${arguments[0]}'] [data-range]`)].map("
                      "(one) => one.textContent)", name)


def is_shown(low, high):
    """Checks what the page says of a range."""
    assert shown() == expected(low, high), (shown(), expected(low, high))
    assert shown("Heap") == expected(low, high, history["host_bytes"]), shown("Heap")
    begin, end, change, most = expected(low, high)
    said = browser.text(".moment")
    figures = f"{begin} at its begin, {end} at its end, {change}; {most} at most, after "
    assert said.startswith(f"From {low:.1f} s to {high:.1f} s: {figures}"), said
    marks = [mark for mark in history["marks"] if low <= mark["seconds"] <= high]
    events = [one.text for one in browser.all(".events li")]
    assert len(events) == len(marks) and f"; {len(marks)} mark" in said, (said, events, marks)
    births = {block["address"]: document["process"]["elapsed_seconds"] - block["age_seconds"]
              for block in document["large_blocks"]}
    born = [block for block in document["large_blocks"] if low <= births[block["address"]] <= high]
    found = browser.one(".born")
    assert int(found.get_attribute("data-bytes")) == sum(block["size_bytes"] for block in born), found.text
    assert int(found.get_attribute("data-blocks")) == len(born), found.text


browser = Browser()

# By a link.
browser.open(page, "#overview?from=3.5&to=7.5")
browser.wait("document.querySelector('.born')")
is_shown(3.5, 7.5)
events = browser.text(".events")
assert "After 5.0 s: early (e.st) stowed (1.0 MiB, RSS 9.0 MiB)" in events, events
owners = {row[0]: row[1:] for row in browser.js(
    "return [...document.querySelectorAll('.owners-then tbody tr')].map((row) => [...row.cells].map("
    "(cell) => cell.textContent))")}
assert owners == {"early (e.st)": ["4.0 MiB", "1.0 MiB", "−3.0 MiB"], "<b>late": ["not known", "2.0 MiB", "not known"],
                  "early (e.st), on devices": ["0 B", "1.0 MiB", "+1.0 MiB"]}, owners
assert "py keep  work.py:3 · <b>late" in browser.text(".range"), browser.text(".range")
assert "memstow diff --html FIRST SECOND" in browser.text(".unknown")

# At the last moment of the curve, an owner has its last figure. Before an owner was registered, it has nothing.
browser.open(page, "#overview?from=1&to=10")
browser.wait("document.querySelector('.born')")
assert "late0 B3.0 MiB+3.0 MiB" in browser.text(".owners-then"), browser.text(".owners-then")

# The keys begin a range at the chosen moment. Escape removes the range.
browser.open(page)
browser.wait("document.querySelector('.timeline').dataset.drawn")
assert not browser.one(".range").is_displayed()
timeline = browser.one(".timeline")
browser.press(".timeline", "HOME", "ARROW_RIGHT", "ARROW_RIGHT")
timeline.send_keys(Keys.SHIFT + Keys.ARROW_RIGHT * 4)
browser.wait("document.querySelector('.born')")
browser.settled()
assert browser.fragment == "#overview?from=2&to=6", browser.fragment
is_shown(2, 6)
assert timeline.get_attribute("aria-valuetext") == browser.text(".moment")
assert browser.js("return document.activeElement.className") == "timeline"
timeline.send_keys(Keys.SHIFT + Keys.ARROW_LEFT * 2) # a new one, from where the last one ended
browser.settled()
assert browser.fragment == "#overview?from=4&to=6", browser.fragment
browser.press(".timeline", "ESCAPE")
assert browser.fragment == "#overview" and not browser.one(".range").is_displayed()
assert browser.text(".moment").endswith(" at the end, after 10.0 s."), browser.text(".moment")

# The mouse chooses a range by dragging. The button removes the range. A click chooses nothing.
width = timeline.size["width"]
ActionChains(browser.driver).move_to_element_with_offset(timeline, -width // 4, 0).click_and_hold().move_by_offset(
    width // 2, 10).release().perform()
browser.wait("document.querySelector('.born')")
browser.settled()
low, high = browser.js("return ['from', 'to'].map((key) => Number(new URLSearchParams(location.hash.split('?')[1]).get("
                       "key)))")
assert abs(low - 2.5) < 0.05 and abs(high - 7.5) < 0.05, (low, high)
assert shown() == expected(low, high)
browser.click(".range button")
assert browser.fragment == "#overview" and not browser.one(".range").is_displayed()
ActionChains(browser.driver).move_to_element(timeline).click().perform()
browser.settled()
assert browser.fragment == "#overview"

# An address may say anything.
for words in ("from=x&to=7", "from=7", "from=5&to=5", "from=-9&to=-3", "from=99&to=100", "from=<b>&to=<b>"):
    browser.open(page, f"#overview?{words}")
    assert not browser.one(".range").is_displayed(), words
browser.open(page, "#overview?from=7.5&to=3.5")
browser.wait("document.querySelector('.born')")
is_shown(3.5, 7.5)
browser.is_clean()
