# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""A button copies a table as text, with tabs between the columns. It copies the rows that the filter leaves, in the
order in which the page shows them, and says how many rows it copied. It copies at most the first 10,000 rows. If the
table has more, the button says so. The call stack of a site can be copied, too."""
from _page import Browser, report, size_text
from _ledger import MIB, Ledger

ROWS, MOST = 10_050, 10_000
ledger = Ledger()
work = ledger.python("work", "/src/work.py", 3)
for number in range(ROWS):
    line = ledger.python(f"part {number}\ta", "/src/work.py", 1000 + number)
    tag = 0 if number else ledger.tag(ledger.owner(1, "unet"))
    ledger.count(ledger.site(stack=ledger.node([work, line]), tag=tag), alloc=(MIB - number, 1))
ledger.save("x.mst")
browser = Browser()
browser.open(report("x.mst"), "#sites")
browser.js("Object.defineProperty(navigator, 'clipboard', { value: { writeText: (text) => { window.copied = text; "
           "return window.refuses ? Promise.reject() : Promise.resolve(); } } })")
BUTTON = ".above button"


def copied(button=BUTTON):
    """The rows that the button copied, and what it says then."""
    browser.js("window.copied = null")
    browser.click(button)
    browser.wait(f"/copied/i.test(document.querySelector({button!r}).textContent)")
    text = browser.js("return window.copied")
    assert text.endswith("\n") and not text.endswith("\n\n"), text[-100:]
    return [row.split("\t") for row in text[:-1].split("\n")], browser.text(button)


(head, *rows), said = copied()
assert head == [one.text for one in browser.all(".rows th")] and head[-1] == "Where", head
assert len(rows) == MOST and said == "Copied the first 10,000 of 10,050 rows", (len(rows), said)
assert all(len(row) == len(head) for row in rows)
where = lambda number: f"py part {number}␉a  work.py:{1000 + number}"
assert [row[-1] for row in rows[:3]] == [where(number) for number in range(3)], rows[:3]
owner = rows[0][head.index("Owner")]
assert (rows[0][0], owner, rows[-1][0]) == ("1.0 MiB", "unet", size_text(MIB - MOST + 1)), rows[0]
browser.wait(f"document.querySelector('{BUTTON}').textContent === 'Copy as text'")

# What is filtered and sorted is copied as it is shown. If the button is pressed again while it says how much it copied,
# its usual words still come back.
browser.type("[type=search]", "part 77")
browser.all(".rows th button")[0].click() # the smallest first
browser.settled()
copied()
(_, *rows), said = copied()
wanted = [number for number in reversed(range(ROWS)) if str(number).startswith("77")]
assert [row[-1] for row in rows] == [where(number) for number in wanted], rows[:3]
assert said == f"Copied {len(wanted)} rows", said
browser.wait(f"document.querySelector('{BUTTON}').textContent === 'Copy as text'")

# The stack of a site and a table of one row can be copied, too. Then both the clipboard and the older way to copy
# refuse, and the page says so.
browser.open_first()
rows, said = copied(".details .actions button")
assert [row[0] for row in rows] == [where(wanted[0]), "py work  work.py:3"], rows
assert said == "Copied", said
browser.click("[data-view=owners]")
browser.type("[type=search]", "unet")
assert copied()[1] == "Copied 1 row"
browser.js("window.refuses = true; document.execCommand = () => false")
assert copied()[1] == "Not copied"
browser.is_clean()
