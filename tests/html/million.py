# alone
# needs: cc stacks deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 600
# long
"""The page of a program with a million call stacks and ten million blocks has at most 5 MB, and the command needs at
most 300 MB of memory to make it. Its sums are exact, whatever the stacks are. A browser opens the page, searches,
filters, inverts, zooms and sorts it, and follows a link. The page of a comparison of two such programs has at most
5 MB, too."""
import os, pathlib, subprocess

import support
from _page import Browser, Data

STACKS, EACH, MB = 1_000_000, 10, 1e6
size = lambda number, k: 16 + (number * 7 + k) % 112
total = sum(size(number, k) for number in range(112) for k in range(EACH)) * (STACKS // 112) + sum(
    size(number, k) for number in range(STACKS // 112 * 112, STACKS) for k in range(EACH))


def is_small(memory):
    """Whether this is at most 300 MB of memory. A command with sanitizers may take more, because they need memory of
    their own."""
    return memory <= 300 * MB or support.features()["sanitize"]


def page_of(*files, to):
    """Writes the page of a file, or the comparison of two. Returns the memory that this took, in bytes."""
    command = subprocess.Popen([support.MEMSTOW, ("report", "diff")[len(files) - 1], *files, "--html", "-o", to],
                               stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(command.pid, 0)
    assert status == 0
    size = pathlib.Path(to).stat().st_size
    print(f"{to}: {size / MB:.2f} MB, {usage.ru_utime + usage.ru_stime:.2f} s of processor, "
          f"{usage.ru_maxrss / 1024:.0f} MB of memory")
    assert size <= 5 * MB, size
    return usage.ru_maxrss * 1024


# Stacks of a real program: the page has all of them.
program = support.compile(support.ROOT / "tests/cost/paths.c", flags=("-O1", "-g"))
support.track(program, STACKS, EACH, options=["--stack-memory=256M"])
memory = page_of("out.mst", to="page.html")
assert is_small(memory), memory
page = Data("page.html")
assert page.figure("live_bytes") == total and page.figure("live_blocks") == STACKS * EACH
assert page.documents["page"]["sites_folded"] == 0, page.documents["page"]
assert len(page.columns["sites.live_bytes"]) == STACKS, page.documents["page"]

# The forms for other tools are bounded, too, except the table, which has a line for each site.
for form, most in (("--folded", 2), ("--pprof", 6), ("--speedscope", 4), ("--massif", 1), ("--csv", 200)):
    with open("form.out", "wb") as out:
        command = subprocess.Popen([support.MEMSTOW, "report", "out.mst", form], stdout=out, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(command.pid, 0)
    size_of = pathlib.Path("form.out").stat().st_size
    print(f"{form}: {size_of / MB:.2f} MB, {usage.ru_utime + usage.ru_stime:.2f} s of processor, "
          f"{usage.ru_maxrss / 1024:.0f} MB of memory")
    assert status == 0 and size_of <= most * MB and is_small(usage.ru_maxrss * 1024), (form, size_of, usage.ru_maxrss)
    if form == "--folded":
        assert sum(int(line.rpartition(" ")[2]) for line in open("form.out")) == total
    if form == "--csv":
        assert sum(1 for _ in open("form.out")) == STACKS + 1

browser = Browser()
browser.open("page.html", "#flame")
assert browser.total() == total
browser.click("[data-choice=blocks]")
assert browser.total() == STACKS * EACH
browser.click("[data-toggle=inverted]")
assert browser.total() == STACKS * EACH and browser.calls()[0][0] == "keep", browser.calls()
browser.type("[type=search]", "way3")
browser.wait("document.querySelector('.found').dataset.sum")
with_way3 = EACH * (STACKS - sum(all(number >> 3 * level & 7 != 3 for level in range(7)) for number in range(STACKS)))
assert int(browser.js("return document.querySelector('.found').dataset.sum")) == with_way3
browser.click("[data-toggle=only-these]")
assert browser.total() == with_way3

# Zoomed into a way, as a link, and out again.
browser.open("page.html", "#flame")
for _ in range(30): # down to the first frame below which the stacks part
    browser.press(".flame", "ARROW_DOWN")
    if browser.text(".flame-view .details h2").startswith("way"):
        break
name, weight = browser.text(".flame-view .details h2"), browser.chosen()
level = sum(sum(size(number, k) for k in range(EACH)) for number in range(STACKS)
            if number >> 18 & 7 == int(name[3:]))
assert weight == level, (name, weight, level)
browser.press(".flame", "ENTER")
link = browser.fragment
assert "zoom=" in link and browser.total() == total
browser.open("page.html", link)
assert browser.text(".flame-view .details h2") == name and browser.chosen() == weight
browser.press(".flame", "ESCAPE")
assert browser.chosen() == total

browser.open("page.html", "#sites")
largest = max(sum(size(number, k) for k in range(EACH)) for number in range(112))
assert browser.rows()[0][0] == f"{largest / 1024:.1f} KiB", browser.rows()[0]
assert browser.text(".count") == f"{STACKS:,} sites"
browser.js("document.querySelector('.scroller').scrollTop = 1e9")
browser.wait("document.querySelectorAll('.rows tr[data-row]').length > 5")
browser.is_clean()

# A comparison with a run that kept one block less of each stack.
support.track(program, STACKS, EACH - 1, options=["--stack-memory=256M"], file="less.mst")
memory = page_of("less.mst", "out.mst", to="diff.html")
assert memory <= 600 * MB or support.features()["sanitize"], memory
grown = total - sum(size(number, k) for number in range(112) for k in range(EACH - 1)) * (STACKS // 112) - sum(
    size(number, k) for number in range(STACKS // 112 * 112, STACKS) for k in range(EACH - 1))
browser.open("diff.html", "#flame")
assert browser.total() == grown
browser.click("[data-choice=blocks]")
assert browser.total() == STACKS
browser.click("[data-choice=before]")
assert browser.total() == STACKS * (EACH - 1)
browser.is_clean()
browser.driver.quit()

# The stacks of these sites are as random as possible, so the page cannot have all sites. It merges the smallest ones.
support.run(support.BUILD / "tests/cost/deep", "deep.mst", STACKS, 1)
page_of("deep.mst", to="deep.html")
deep, document = Data("deep.html"), support.report("deep.mst", "--top=0")
assert deep.figure("live_bytes") == document["totals"]["live_bytes"] and deep.figure("live_blocks") == STACKS
assert deep.figure("allocated_bytes") == document["totals"]["allocated_bytes"]
assert sum(deep.columns["sites.folded"]) == deep.documents["page"]["sites_folded"] == STACKS - sum(
    not one for one in deep.columns["sites.folded"])
assert sum(not one for one in deep.columns["sites.folded"]) > 20_000
