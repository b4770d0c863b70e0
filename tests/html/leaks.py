# needs: deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 200
"""The page of leaks: growth from run to run with its curve, memory that a gone model left, and the report of the same
file, all as in --json."""
import json

import support
from _leaking import record
from _page import Browser, Data, size_text, sys
from _ledger import MIB, RUNNING, Ledger, path_of

record("out.mst")
document = json.loads(support.memstow("leaks", "out.mst", "--json", status=1).stdout)
support.memstow("leaks", "out.mst", "--html", "-o", "page.html", status=1)
page = Data("page.html")
for key in ("found", "leaks", "retired", "kept", "not_leaks", "runs"):
    assert page.documents["leaks"][key] == document[key], key
assert page.documents["page"]["command"] == "leaks"
report = support.report("out.mst", "--top=1000000")
assert page.figure("live_bytes") == sum(site["live_bytes"] for site in report["sites"])
leak = next(leak for leak in document["leaks"] if any(frame["function"] == "leaking" for frame in leak["stack"]))
curve = leak["curve"]
assert len(curve) >= 10 and all(100_000 <= size < 101_000 for _, size in curve), curve
assert sum(size for _, size in curve) == leak["live_bytes"]

browser = Browser()
browser.open("page.html")
assert browser.fragment == "" and browser.one("[aria-current]").text == "Leaks"
assert browser.text(".headline").startswith(f"{document['found']} leak"), browser.text(".headline")
cards = [card.text for card in browser.all(".leak")]
assert len(cards) == document["found"], cards
grows = next(card for card in cards if "Leaky" in card)
assert grows.startswith(size_text(round(leak["bytes_per_run"])) + " a run, Leaky"), grows
assert leak["confidence"] in grows and f"{leak['grew']} of {leak['judged']} runs" in grows, grows
assert "leaking" in grows and browser.all(".curve .line")
gone = next(card for card in cards if "old model" in card)
assert f"model old model (old.bin) is gone, and left {size_text(document['retired'][0]['live_bytes'])}" in gone, gone
browser.all("summary")[0].click()
assert browser.all(".stack .name")[0].text
browser.click("[data-view=flame]")
assert browser.total() == page.figure("live_bytes")
browser.is_clean()

# The page of a report has the same view; it opens with the overview.
support.memstow("report", "out.mst", "--html", "-o", "report.html")
page = Data("report.html")
for key in ("found", "leaks", "retired", "kept", "not_leaks", "runs"):
    assert page.documents["leaks"][key] == document[key], key
browser.open("report.html")
assert browser.one("[aria-current]").text == "Overview"
browser.click("[data-view=leaks]")
assert browser.text(".headline").startswith(f"{document['found']} leak"), browser.text(".headline")
assert [card.text for card in browser.all(".leak")] == cards
browser.is_clean()

# The page names what holds the memory of an owner that is gone, as text, in the order of the trace.
made = Ledger(start_ns=10**9, end_ns=60 * 10**9)
gone = made.owner(1, "gone", "g.st", retired=1, end_ns=5 * 10**9)
for number in range(10, 34, 4):
    made.owner(3, f"run {number}", retired=1, begin_ns=number * 10**9, end_ns=(number + 2) * 10**9, outcome=1)
made.count(made.site(stack=made.node([made.python("work", "/w.py", 3)]), tag=made.tag(gone)), alloc=(9 * MIB, 3))
made.line(kind="HELD", owner=gone, holders=["list in module planted: KEEP", "<b>node cache</b>"])
made.save("held.mst")
support.memstow("leaks", "held.mst", "--html", "-o", "held.html", status=1)
holders = json.loads(support.memstow("leaks", "held.mst", "--json", status=1).stdout)["retired"][0]["holders"]
browser.open("held.html")
card = browser.one(".leak").text
assert len(holders) == 2 and f"Held by\n{'; '.join(holders)}" in card, (holders, card)
assert not browser.all(".leak b")

# The page names what holds memory that grows, and the node pack that holds it.
grows = Ledger(state=RUNNING)
module = grows.module("/opt/program")
for number in range(20):
    run = grows.owner(3, f"run {number}", retired=1, begin_ns=number * 10**9, end_ns=(number + 1) * 10**9)
    grows.count(grows.site(module, tag=grows.tag(0, 0, run)), alloc=(MIB, 1))
grows.line(kind="HELD", by="test", path=path_of("/opt/program"), blocks=20, followed=3, held=3, pack="greedy",
           place="greedy.KEPT", holders=["greedy.KEPT[0]"])
grows.save("grows.mst")
support.memstow("leaks", "grows.mst", "--html", "-o", "grows.html", status=1)
browser.open("grows.html")
card = browser.one(".leak").text
assert "1.0 MiB a run" in card and "greedy" in card.split("\n")[0] and "Held by\ngreedy.KEPT[0]" in card, card

# Options that exclude each other are refused. A page is written whatever the verdict is; the exit status shows the
# verdict.
for words in (["-o", "x.html"], ["--html", "--json"]):
    support.memstow("leaks", "out.mst", *words, status=2)
support.track(sys.executable, "-c", "pass", file="clean.mst")
support.memstow("leaks", "clean.mst", "--html", "-o", "clean.html", status=5)
support.memstow("report", "clean.mst", "--html", "-o", "no_runs.html")
assert "leaks" not in Data("no_runs.html").documents
twice = ["clean.mst", "clean.mst"]
support.memstow("report", *twice, "--html", "-o", "twice.html")
said = json.loads(support.memstow("leaks", *twice, "--json", status=5).stdout)
assert Data("twice.html").documents["leaks"]["verdict"] == said["verdict"]
browser.open("clean.html")
assert browser.text(".headline").startswith("Cannot tell: no run has ended"), browser.text(".headline")
browser.is_clean()
