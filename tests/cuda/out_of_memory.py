#!/usr/bin/env python3
# When a device has no memory for the program, memstow writes a snapshot, which shows the owners at that time. It writes
# only one snapshot if several requests fail soon after one another. It writes none if the program only tries how much
# it can get.
import pathlib

import support, _simulated

program = _simulated.program(pathlib.Path(__file__).with_name("_refused.c"), _simulated.LIBRARIES / "libcuda.so.1",
                             name="refused")
environment = _simulated.environment()
for how, requests in (("pool", 2), ("plain", 3), ("probe", None)):
    support.track(program, how, env=environment, file=f"{how}.mst")
    refused = support.report(f"{how}.mst")["cuda"]["refused"]
    taken = sorted(p.name for p in support.HERE.glob(f"{how}.mst.oom*"))
    assert taken == ([] if how == "probe" else [f"{how}.mst.oom1.mst"]), f"{how}: {taken}"
    assert refused["snapshots"] == len(taken) and requests in (None, refused["requests"]), f"{how}: {refused}"
    for file in taken:
        then = support.report(file)
        assert then["process"]["kind"] == "snapshot" and then["totals"]["cuda"]["live_bytes"] == 5 << 20
        assert then["cuda"]["refused"]["last_bytes"] == 100 << 30
    # Memory over time has it, too.
    history = support.report(f"{how}.mst")["history"]
    marks = [mark for mark in history["marks"] if mark["kind"] == "out_of_memory"]
    assert len(marks) == refused["requests"] and marks[-1]["bytes"] == refused["last_bytes"], f"{how}: {marks}"
    assert {(mark["device"], mark["cuda_bytes"]) for mark in marks} == {(0, 5 << 20)}, f"{how}: {marks}"
    device, = history["devices"]
    assert device["device"] == 0 and device["bytes"][0] == 5 << 20 and max(device["bytes"]) >= 8 << 20, device
text = support.memstow("report", "plain.mst").stdout
assert "no memory for 3 requests: the last was 100.0 GiB on device 0, with 5.0 MiB live" in text, text
assert "plain.mst.oom1.mst" in text or "FILE.oom1.mst" in text, text

# The snapshot has the answer of NVML at that time. The simulated NVML gets none of its variables here, so it answers
# 1 GiB, none of it in use.
beside = {**environment, "LD_LIBRARY_PATH": f"{_simulated.LIBRARIES / 'nvml'}:{environment['LD_LIBRARY_PATH']}"}
support.track(program, "plain", env=beside, file="asked.mst")
nvml = support.report("asked.mst.oom1.mst")["cuda"]["devices"][0]["nvml"]
assert (nvml["known"], nvml["asked"], nvml["total_bytes"], nvml["used_bytes"]) == (True, "snapshot", 1 << 30, 0), nvml
