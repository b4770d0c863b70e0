# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 300
"""A page has at most 5 MB after 100,000 runs, with a full history, 100,000 blocks and as many call stacks. The page has
all models and all owners that hold memory, unless their names alone would fill it. If a run has ended and holds
nothing, the page has it only if it is one of the latest 1,000 such runs. One name stands for all owners that are left
out, and the page says how many these are. All sums stay exact."""
import random

import support
from _page import Browser, Data, report, size_text
from _ledger import MIB, Ledger

RUNS, KEPT, MOST = 100_000, 1000, 5_000_000
S = 10**9
random.seed(21)


def made(runs, name="prompt {}", blocks=100_000, model_name="unet"):
    ledger = Ledger(start_ns=S, end_ns=S + runs * S, total_peak=0)
    module = ledger.module("/opt/program")
    frames = [ledger.python(f"function_{number}", f"/src/{number % 97}.py", number) for number in range(2000)]
    models = [ledger.owner(1, f"{model_name} {number}", f"/models/{number}.st", retired=number % 2)
              for number in range(3)]
    for number in range(runs):
        run = ledger.owner(3, name.format(number), retired=1, outcome=1)
        stack = ledger.node([random.choice(frames) for _ in range(12)])
        site = ledger.site(module, ledger.tag(models[number % 3] if number % 100 == 0 else 0, run=run), stack=stack)
        size = random.randrange(1, 1 << 20)
        # Each 500th run still holds memory; the three models hold some of it.
        ledger.count(site, alloc=(size, 1), free=(0, 0) if number % 500 == 0 else (size, 1))
        if number >= runs - 2048:
            ledger.mark(S + number * S, 1, run)
        if number >= runs - 4000:
            ledger.point(S + number * S, random.randrange(1 << 30), random.randrange(1 << 30), run)
    for number in range(blocks):
        ledger.block(random.randrange(1 << 47) & -4096, random.randrange(1 << 16, 1 << 30), 2 + number % runs,
                     S + random.randrange(runs * S), random.randrange(1 << 30))
    ledger.save("x.mst")
    return report("x.mst")


page = made(RUNS)
size = page.stat().st_size
print(f"{size / 1e6:.2f} MB")
assert size <= MOST, size
data, document = Data(page), support.report("x.mst", "--top=0")
about, owners = data.documents["page"], data.documents["owners"]["owners"]
live = document["totals"]["live_bytes"]
assert data.figure("live_bytes") == live and data.figure("allocated_bytes") == document["totals"]["allocated_bytes"]
assert data.figure("live_blocks") == RUNS // 500
holding = RUNS // 500
assert len(owners) == 3 + holding + KEPT and about["owners_omitted"] == RUNS - holding - KEPT, (len(owners), about)
assert {one["id"] for one in data.documents["report"]["owners"]} == {0, *(one["id"] for one in owners)}
assert {one["id"] for one in owners} >= set(range(RUNS + 4 - KEPT, RUNS + 4))
assert about["omitted_owner"] not in {one["id"] for one in owners}
assert 0 < len(data.columns["blocks.size"]) == 100_000 - about["blocks_omitted"]
assert {owner for kind in ("model", "node", "run") for owner in data.columns[f"tags.{kind}"]} <= {
    0, about["omitted_owner"], *(one["id"] for one in owners)}

browser = Browser()
browser.open(page)
note = f"{about['owners_omitted']:,} owners are left out"
assert note in browser.text("#notes ~ .notes"), browser.text("#notes ~ .notes")
browser.open(page, "#owners")
assert browser.text(".count") == f"{len(owners):,} owners; {about['owners_omitted']:,} more are left out"
browser.open(page, "#flame?measure=allocated&owners=1")
assert browser.total() == document["totals"]["allocated_bytes"]
browser.open(page, "#flame?owners=1")
assert browser.total() == live
models = {one["name"]: one["live_bytes"] for one in owners if one["kind"] == "model" and one["live_bytes"]}
assert models and {f"model {name} (/models/{name.split()[1]}.st)": size_text(value) for name, value in models.items()
                   }.items() <= dict(browser.calls()).items(), browser.calls()
browser.open(page, "#flame?owners=1&measure=allocated&find=function_7")
assert browser.text(".failed") is None
browser.is_clean()
browser.driver.quit()

# The owners' names alone would fill the page, so only the owners that hold most stay in it.
noise = lambda: "".join(random.choice("0123456789abcdef") for _ in range(20_000))
ledger = Ledger()
for number in range(500):
    owner = ledger.owner(1, noise())
    ledger.count(ledger.site(ledger.module("/opt/program"), ledger.tag(owner)), alloc=(MIB + number, 1))
ledger.save("x.mst")
page = report("x.mst")
data = Data(page)
ids = {one["id"] for one in data.documents["owners"]["owners"]}
assert page.stat().st_size <= MOST and 10 < len(ids) < 500 and min(ids) == 501 - len(ids), (len(ids), min(ids))
assert data.documents["page"]["owners_omitted"] == 500 - len(ids)
assert data.figure("live_bytes") == sum(MIB + number for number in range(500))
