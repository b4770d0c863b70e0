#!/usr/bin/env python3
# needs: torch
# timeout: 300
"""PyTorch trains on the CPU with DataLoader workers. The losses are the same as without memstow. The report adds up,
each worker has a file of its own, and the resident set is explained."""
import pathlib

import support
from _report import check_report, check_residency

script = pathlib.Path(__file__).with_name("_train.py")
plain = support.run(support.PYTHON, script, timeout=120)
tracked = support.track(support.PYTHON, script, timeout=150)
assert tracked.stdout == plain.stdout, f"{tracked.stdout}\nand without memstow\n{plain.stdout}"
assert tracked.stderr == plain.stderr, tracked.stderr

main = support.report("out.mst")
check_report(main)
check_residency(main)
assert main["totals"]["peak_bytes"] >= 64 * 2**20, "the data set alone has 64 MiB"
leaks = [b for b in main["large_blocks"] if 64 * 2**20 <= b["size_bytes"] < 65 * 2**20]
assert len(leaks) == 1 and "libc10" in leaks[0]["module"], main["large_blocks"][:5]
assert leaks[0]["resident_bytes"] >= 64 * 2**20 and main["totals"]["host"]["live_bytes"] >= 64 * 2**20, leaks
modules = {frame["module"] for site in main["sites"] for frame in site["stack"]}
assert any("libtorch_cpu" in (module or "") for module in modules), modules

workers = [support.report(file) for file in support.HERE.glob("out.mst.*")]
workers = [w for w in workers if w["process"]["fork_depth"]]
assert len(workers) == 4, f"two workers in each of two epochs: {[w['process'] for w in workers]}"
for worker in workers:
    assert worker["process"]["inherited"]["bytes_at_fork"] >= 64 * 2**20, worker["process"]
    check_report(worker)
