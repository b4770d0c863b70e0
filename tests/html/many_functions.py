# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
"""A frame of a flame graph calls 2,300 functions, but the page keeps at most 2,000 for it. One function holds 1 MiB,
each of the others 64 bytes. The large function is shown in the graph and in the inverted graph, whatever its place in
the tree. Functions that are left out are counted, and the sum is exact."""
from _page import Browser, report
from _ledger import MIB, Ledger

FUNCTIONS = 2300
for large_at in (0, FUNCTIONS // 2, FUNCTIONS - 1):
    ledger = Ledger()
    for number in range(FUNCTIONS):
        name = "large" if number == large_at else f"small_{number}"
        site = ledger.site(stack=ledger.node([ledger.python(name, "/src/work.py", number + 1)]))
        ledger.count(site, alloc=(MIB if name == "large" else 64, 1))
    ledger.save("many.mst")
    browser = Browser()
    browser.open(report("many.mst"))
    for address in ("#flame", "#flame?kinds=python&inverted=1"):
        browser.open("page.html", address)
        calls = browser.calls()
        assert calls[0] == ("py large", "1.0 MiB"), (address, calls[:3])
        assert browser.total() == MIB + 64 * (FUNCTIONS - 1), browser.total()
        more = FUNCTIONS - len(calls)
        assert f"and {more:,} more" in browser.text(".details"), browser.text(".details")
    browser.is_clean()
    browser.driver.quit()
