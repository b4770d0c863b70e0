# needs: cc deb:chromium deb:chromium-driver pip:selenium==4.51.0
# timeout: 300
"""CUDA devices on the page, as in --json: a curve of each device with its marks, the devices side by side, the flame
graph of their memory, the memory of owners on them, and device memory in a range of time. The driver is simulated, a
test double."""
import support
from _devices import record
from _page import Browser, Data, report, size_text
from _ledger import MIB

record("out.mst", "host")
document = support.report("out.mst", "--top=1000000")
page = report("out.mst")
cuda, history = document["cuda"], document["history"]
assert [device["live_bytes"] for device in cuda["devices"]] == [40 * MIB, 20 * MIB], cuda["devices"]
browser = Browser()

# A curve for each device beside the one of the host, and the totals.
browser.open(page)
browser.wait("[...document.querySelectorAll('.timeline')].every((one) => one.dataset.drawn)")
curves = {one.get_attribute("aria-label"): one for one in browser.all(".timeline")}
assert list(curves) == ["Live memory over time", "CUDA device 0 over time", "CUDA device 1 over time"], list(curves)
words = [one.text for one in browser.all(".moment")]
for device, said in zip(history["devices"], words[1:]):
    assert said.startswith(f"{size_text(max(device['bytes']))} at most") and (
        f"{size_text(device['bytes'][-1])} at the end" in said), (device, said)
row = browser.js("return Object.fromEntries([...[...document.querySelectorAll('.figures tr')].find((row) => "
                 "row.textContent.startsWith('CUDA')).querySelectorAll('[data-figure]')].map((one) => "
                 "[one.dataset.figure, one.textContent]))")
assert row["live_bytes"] == size_text(document["totals"]["cuda"]["live_bytes"]) == size_text(60 * MIB), row
assert row["live_blocks"] == str(document["totals"]["cuda"]["live_blocks"]), row
assert f"{size_text(60 * MIB)} more are on CUDA devices." in browser.text(".headline")

# Devices side by side: at the same height, each with its figures.
cards = [(card.text, card.rect) for card in browser.all("#devices ~ .devices .device")]
assert len(cards) == 2 and cards[0][1]["y"] == cards[1][1]["y"], cards
for device, (text, _) in zip(cuda["devices"], cards):
    assert text.startswith(f"{device['device']}: {device['name'] or 'device'}"), (device, text)
    assert (f"{size_text(device['live_bytes'])} live of {size_text(device['total_bytes'])}, "
            f"{size_text(device['peak_bytes'])} at most") in text, (device, text)

# The flame graph of devices, and of the host; the search keeps to the chosen memory.
data = Data(page)
on_devices = sum(value for value, device in zip(data.columns["sites.live_bytes"], data.columns["sites.device"])
                 if device)
assert on_devices == document["totals"]["cuda"]["live_bytes"]
browser.click("[data-view=flame]")
assert browser.total() == document["totals"]["live_bytes"]
browser.click("[data-choice=device]")
assert browser.total() == on_devices and "place=device" in browser.fragment
browser.type("[type=search]", "take_first")
browser.wait("document.querySelector('.found').dataset.sum")
assert int(browser.js("return document.querySelector('.found').dataset.sum")) == 40 * MIB
browser.open(page, "#flame?place=device&owners=1")
assert dict(browser.calls()) == {"model the model (m.bin)": size_text(60 * MIB)}, browser.calls()
browser.click("[data-choice=host]")
assert browser.total() == document["totals"]["live_bytes"]

# Owners.
browser.open(page, "#owners")
heads = [head.text for head in browser.all(".rows th")]
model = next(row for row in browser.rows() if "the model" in row)
assert model[heads.index("On devices")] == size_text(60 * MIB), (heads, model)
browser.type("[type=search]", "the model")
browser.open_first()
assert f"On devices\n{size_text(60 * MIB)}" in browser.one(".details dl").text
assert "Memory on devices, at runs and moves" in [item.text for item in browser.all(".details h3")]

# A range: from before the first run to its end.
end = next(mark["seconds"] for mark in history["marks"] if mark["kind"] == "run_ended")
browser.open(page, f"#overview?from=0&to={end + 1e-6}")
for device in history["devices"]:
    shown = browser.js("return Object.fromEntries([...document.querySelectorAll('tr[data-curve=\"CUDA device "
                       f"{device['device']}\"] [data-range]')].map((one) => [one.dataset.range, one.textContent]))")
    then = [size for at, size in zip(device["seconds"], device["bytes"]) if at <= end + 1e-6]
    assert shown["begin"] == size_text(0) and shown["end"] == size_text(then[-1]) and (
        shown["most"] == size_text(max(then))), (shown, device, end)
then = [row.text for row in browser.all(".owners-then tbody tr")]
assert any(row.startswith("the model (m.bin), on devices") and size_text(30 * MIB) in row for row in then), then

# If the host's memory hardly changes, the host has no curve. Each device's name still stands above the device's curve.
record("alone.mst")
browser.open(report("alone.mst"))
assert [one.get_attribute("aria-label") for one in browser.all(".timeline")] == [
    "CUDA device 0 over time", "CUDA device 1 over time"]
assert [one.text for one in browser.all("#history ~ h3")][:2] == ["CUDA device 0", "CUDA device 1"]
browser.is_clean()
