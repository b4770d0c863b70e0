#!/usr/bin/env python3
# Each route of libraries to CUDA's entry points, over the simulated driver: for each kind of memory, the ledger agrees
# with the program to the byte.
import support, _simulated

DEVICE_KINDS = ("device", "pool", "managed", "array", "vmm")

for client in _simulated.clients():
    environment = _simulated.environment()
    alone = support.run(client, env=environment).stdout
    tracked = support.track(client, env=environment).stdout
    assert tracked == alone, f"{client.name}: other output\n{tracked}"
    report = support.report()
    wanted, found = _simulated.said(alone), _simulated.found(report)
    assert wanted, f"{client.name} holds nothing"
    for kind, sums in wanted.items():
        assert found[kind] == sums, f"{client.name}: {kind} is {found[kind]}, not {sums}"
    for kind in set(DEVICE_KINDS) - set(wanted):
        assert found[kind] == (0, 0), f"{client.name}: {kind} is {found[kind]}"
    on_device = sum(wanted[kind][0] for kind in DEVICE_KINDS if kind in wanted)
    cuda = report["cuda"]
    assert report["totals"]["cuda"]["live_bytes"] == on_device
    assert cuda["devices"][0]["live_bytes"] == on_device
    assert sum(s["live_bytes"] for s in cuda["sites"]) == on_device
    assert cuda["foreign_frees"] == cuda["missed_frees"] == cuda[
        "unknown_entries"] == 0, f"{client.name}: {cuda['foreign_frees']} foreign frees"
    assert not report["lost"]["reasons"], report["lost"]
    in_program = [s for s in cuda["sites"] if any(f["function"] == "main" for f in s["stack"])]
    in_thread = [s for s in cuda["sites"] if any((f["function"] or "").endswith("_in_thread") for f in s["stack"])]
    assert len(in_program) >= 8 and in_thread, f"{client.name}: the stacks do not lead to the program"
    assert all(s["stack"][0]["module"].endswith(client.name) for s in in_program + in_thread), \
        f"{client.name}: the innermost frame is not who called"
    print(f"{client.name}: {on_device} bytes in {report['totals']['cuda']['live_blocks']} blocks")
