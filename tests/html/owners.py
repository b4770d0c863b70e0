# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""Owners, their memory over time, their history and their triggers in a browser; and the flame graph by owner, or of
one owner."""
import support
from _page import Browser, report, size_text
from _ledger import MIB, Ledger
from _decisions import CACHE, CLIP, clean

ledger = clean()
work, take = ledger.python("work", "/src/work.py", 3), ledger.python("take", "/src/work.py", 9)
stacks = [ledger.node([work, line]) for line in (ledger.python("rest", "/src/work.py", 5), take)]
node, run = ledger.owner(2, "KSampler"), ledger.owner(3, "picture 1", retired=1)
tags = [0, ledger.tag(CLIP), ledger.tag(CLIP, node, run), ledger.tag(CACHE), ledger.tag(0, node, run),
        ledger.tag(CLIP, node, run)] # the same owners again
for number in range(40):
    site = ledger.site(stack=stacks[number % 2], tag=tags[number // 2 % 6])
    ledger.count(site, alloc=(MIB + number * 1000, 1 + number % 3))
ledger.save("made.mst")
document = support.report("made.mst", "--top=1000")
sites = document["sites"]
sums = lambda **owners: sum(site["live_bytes"] for site in sites
                            if all(site[kind] == name for kind, name in owners.items()))
page = report("made.mst")
browser = Browser()

browser.open(page, "#owners")
texts = [" ".join(row) for row in browser.rows()]
clip = next(text for text in texts if "clip.safetensors" in text)
assert size_text(sums(model="clip.safetensors")) in clip and "it is in use" in clip, texts
assert any("an old model" in text and "node cache: node 4" in text for text in texts), texts
browser.type("[type=search]", "clip")
assert len(browser.rows()) == 1 and browser.text(".count") == f"1 of {len(document['owners']) - 1} owners"
browser.open_first()
history = browser.text(".details .stack")
assert ("policy free" in history and "blocked: 256.0 MiB before" in history
        and "trigger 2, memory was short" in history), history

# Its call stacks: the owner's memory, as in --json.
next(button for button in browser.all(".actions button") if button.text == "Its call stacks").click()
browser.settled()
assert browser.total() == sums(model="clip.safetensors") and "owner=" in browser.fragment
assert "Only what clip.safetensors holds" in browser.text(".crumbs")
browser.open(page, browser.fragment)
assert browser.total() == sums(model="clip.safetensors")

# By owner: model, node, run, then the stack.
browser.open(page, "#flame?owners=1")
assert dict(browser.calls()) == {"model clip.safetensors": size_text(sums(model="clip.safetensors")),
                                 "model feature cache": size_text(sums(model="feature cache")),
                                 "model none": size_text(sums(model=None))}, browser.calls()
next(row for row in browser.all(".calls .row") if "clip" in row.text).click()
for name, kinds in (("node KSampler", dict(node="KSampler")),
                    ("run picture 1", dict(node="KSampler", run="picture 1"))):
    here = dict(browser.calls())
    assert here[name] == size_text(sums(model="clip.safetensors", **kinds)), here
    next(row for row in browser.all(".calls .row") if name in row.text).click()
assert [name for name, _ in browser.calls()] == ["py work"], browser.calls()
work_of_clip = sums(model="clip.safetensors", node="KSampler", run="picture 1")
browser.all(".calls .row")[0].click()
parts = {f"py {name}": size_text(sum(site["live_bytes"] for site in sites if site["model"] == "clip.safetensors"
                                     and site["node"] and site["stack"][0]["function"] == name))
         for name in ("rest", "take")}
assert dict(browser.calls()) == parts and browser.chosen() == work_of_clip, (browser.calls(), parts)

# In the flame graph by owner, too, "All calls of it" shows all calls of the function, whichever owner they are for.
next(row for row in browser.all(".calls .row") if "take" in row.text).click()
next(button for button in browser.all(".actions button") if button.text == "All calls of it").click()
browser.settled()
assert "owners=1" in browser.fragment and "focus=" in browser.fragment, browser.fragment
taken = sum(site["live_bytes"] for site in sites if site["stack"][0]["function"] == "take")
assert browser.total() == taken, (browser.total(), taken)

# The decisions of each trigger.
browser.open(page, "#decisions")
cards = [card.text for card in browser.all(".trigger")]
assert cards[0].startswith("Trigger 2: memory was short") and cards[1].startswith("Trigger 1: a run ended"), cards
assert "unet.safetensors" in cards[1] and "freed" in cards[1] and "512.0 MiB" in cards[1], cards[1]
assert ("2 kept, 1 stowed, 1 freed, 1 blocked. 638.0 MiB were given back in 1.2 s: 1.2 GiB before, 689.0 MiB after."
        in cards[1])
shown = browser.js("""return Object.fromEntries([...document.querySelectorAll('.trigger .tag')].map(
    (tag) => [tag.textContent, getComputedStyle(tag).backgroundColor]))""")
colours = {shown[category] for category in ("kept", "stowed", "freed", "blocked")}
assert len(colours) == 4, shown
browser.is_clean()

# Policies, and what is stowed.
away = Ledger()
for name, policy, stowed in (("put away", 2, 100 * MIB), ("in use", 1, 0), ("no policy", 0, 0)):
    owner = away.owner(1, name, policy=policy, stowed=stowed)
    away.count(away.site(away.module("/opt/program"), tag=away.tag(owner)), alloc=(120 * MIB, 1))
away.save("away.mst")
browser.open(report("away.mst"), "#owners")
heads = [head.text for head in browser.all("[role=columnheader]")]
rows = {row["Name"]: row for row in (dict(zip(heads, row, strict=True)) for row in browser.rows())}
assert [(rows[name]["Policy"], rows[name]["Stowed"]) for name in ("put away", "in use", "no policy")] == [
    ("stow", "100.0 MiB"), ("keep", "–"), ("", "–")], rows

# The chosen owner has a curve of its memory over time, with points at its marks and at the last moment. An owner
# without marks has no curve.
S = 10**9
timed = Ledger(start_ns=S, end_ns=11 * S)
unet, other, last = timed.owner(1, "<b>unet", "a.st"), timed.owner(1, "other"), timed.owner(3, "first")
timed.count(timed.site(timed.module("/opt/program"), tag=timed.tag(unet)), alloc=(3 * MIB, 1))
timed.count(timed.site(timed.module("/opt/program"), tag=timed.tag(other)), alloc=(2 * MIB, 1))
timed.mark(3 * S, 2, last)
for second, live, on_devices in ((3, 5, 0), (5, 1, 4)):
    timed.owner_mark(second * S, unet, live * MIB, on_devices * MIB)
timed.mark(5 * S, 7, unet, moved=4 * MIB)
timed.save("timed.mst")
browser.open(report("timed.mst"), "#owners")
browser.type("[type=search]", "unet")
browser.open_first()
assert [item.text for item in browser.all(".details h3")] == [
    "Live memory, at runs and moves", "Memory on devices, at runs and moves"], browser.text(".details")
assert browser.one(".details .timeline").get_attribute("aria-label") == "Live memory of <b>unet (a.st) over time"
said = lambda *keys: browser.press(".details .timeline", *keys) or browser.text(".details .moment")
assert browser.text(".details .moment") == "5.0 MiB at most, after 2.0 s; 3.0 MiB at the end, after 10.0 s."
assert said("HOME") == "After 2.0 s: 5.0 MiB", said()
assert said("ARROW_RIGHT") == "After 4.0 s: 1.0 MiB, <b>unet (a.st) stowed", said()
assert said("END") == "After 10.0 s: 3.0 MiB", said()
browser.size(390, 800)
browser.wait("document.querySelector('.details .timeline canvas').getBoundingClientRect().right <= 390")
browser.size(1280, 900)
browser.type("[type=search]", "other")
browser.open_first()
assert "other" in browser.text(".details h2") and not browser.all(".details .timeline")
browser.is_clean()
