"""The JSON report has the keys that scripts rely on."""
from _ledger import FORK_CHILD, Ledger, MIB
from support import report

ledger = Ledger(total_peak=1, flags=FORK_CHILD, inherited=1000, lost={5: 7})
model = ledger.owner(1, "unet", "unet.safetensors")
module = ledger.module("/opt/program")
ledger.count(ledger.site(module, ledger.tag(model=model)), alloc=(3000, 3), free=(1000, 1))
ledger.count(ledger.site(module), alloc=(500, 1))
ledger.count(1, free=(400, 2))
ledger.count(ledger.site(module), alloc=(4096, 1), thread=1)
document = report(ledger.save("x.mst"))

assert (document["format"], document["version"]) == ("memstow-report", 1)
assert document["process"]["inherited"] == {"bytes_at_fork": 1000, "freed_bytes": 400, "freed_blocks": 2,
                                            "live_bytes": 600}
totals = document["totals"]
assert {k: totals[k] for k in ("live_bytes", "live_blocks", "peak_bytes", "allocated_bytes", "allocated_blocks")} == {
    "live_bytes": 6596, "live_blocks": 4, "peak_bytes": 6596, "allocated_bytes": 7596, "allocated_blocks": 5}, totals
assert totals["host"]["live_bytes"] == 2500 and totals["mapped"]["live_bytes"] == 4096
assert totals["cuda"]["live_bytes"] == 0
assert {"file_bytes", "reserved_bytes"} <= totals["mapped"].keys()
assert document["residency"] is None
assert document["peak"] == {"picture_bytes": 6596, "picture_blocks": 4, "picture_of_bytes": 6596, "distance_bytes": 0,
                            "from": "live", "seconds_after_start": 2.0}, document["peak"]
no_cuda = {"device_stowed_bytes": 0, "cuda_bytes": 0, "cuda_blocks": 0, "cuda_pinned_bytes": 0}
assert document["cuda"] is None
assert document["owners"] == [{"id": 1, "kind": "model", "name": "unet", "origin": "unet.safetensors", "policy": None,
                               "outcome": None, "live_bytes": 2000, "live_blocks": 2, "peak_bytes": 2000,
                               "resident_bytes": None, "stowed_bytes": 0, **no_cuda},
                              {"id": 0, "kind": "custom", "name": "untagged", "origin": None, "policy": None,
                               "outcome": None, "live_bytes": 4596, "live_blocks": 2, "peak_bytes": 4596,
                               "resident_bytes": None, "stowed_bytes": 0, **no_cuda}], document["owners"]
assert [site["live_bytes"] for site in document["sites"]] == [4596, 2000]
assert document["sites"][1]["model"] == "unet" and document["sites"][1]["run"] is None
assert document["sites"][1]["stack"] == [
    {"function": None, "file": None, "line": None, "module": "/opt/program", "kind": "native"}]
assert document["lost"]["blocks"] == 7 and len(document["lost"]["reasons"]) == 1
assert document["modules"][0]["live_bytes"] == 6596

# Models that have the same name but come from several files are told apart in each part of the JSON that names a model.
MODEL, NODE = 1, 2
ledger = Ledger()
for number, file in enumerate(("a.st", "b.st"), 1):
    tag = ledger.tag(ledger.owner(MODEL, "MODEL WAN21", file), ledger.owner(NODE, "Loader", f"node {number}"))
    site = ledger.site(ledger.module("/opt/program"), tag)
    ledger.count(site, alloc=(MIB, 1))
    ledger.block(number * MIB, MIB, site)
ledger.count(ledger.site(), alloc=(1, 1))
document = report(ledger.save("files.mst"))
for key in ("sites", "large_blocks"):
    told = [tuple(one[name] for name in ("model", "model_origin", "node", "node_origin")) for one in document[key]]
    assert sorted(told[:2]) == [("MODEL WAN21", "a.st", "Loader", "node 1"), ("MODEL WAN21", "b.st", "Loader",
                                                                              "node 2")], told
assert told[2:] == [] and document["sites"][2]["model_origin"] is None, document["sites"]
