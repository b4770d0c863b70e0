#!/usr/bin/env python3
# Machines whose CUDA is of little use, over the simulated driver (a test double): no device, and a driver of CUDA 11.
# Programs end as they do without memstow, and the ledger has their memory.
import support, _simulated

DEVICE_KINDS = ("device", "pool", "managed", "array", "vmm", "pinned", "registered")

for client in _simulated.clients():
    environment = _simulated.environment(SIMCUDA_DEVICES="0")
    alone = support.run(client, env=environment, status=None)
    tracked = support.track(client, env=environment, status=None)
    assert alone.returncode, f"{client.name} does without a device"
    assert (tracked.returncode, tracked.stdout,
            tracked.stderr) == (alone.returncode, alone.stdout, alone.stderr), (client, tracked)
    report = support.report()
    assert not report["totals"]["cuda"]["live_blocks"] and not report["lost"]["reasons"], (client, report["lost"])

for name in ("driver_dlsym", "driver_getproc_v1", "driver_linked"):
    client, environment = _simulated.BUILT / "clients" / name, _simulated.environment(SIMCUDA_VERSION="11080")
    alone = support.run(client, env=environment).stdout
    assert support.track(client, env=environment).stdout == alone
    found, wanted = _simulated.found(support.report()), _simulated.said(alone)
    assert wanted and all(found[kind] == wanted.get(kind, (0, 0)) for kind in DEVICE_KINDS), (name, found, wanted)
