"""report, snapshot, diff and ps agree about a process that runs."""
import json, os, subprocess, sys
from support import MEMSTOW, expect_exit, memstow, report, start

code = "x = [bytearray(100_000) for _ in range(200)]; print('ready', flush=True); input()"
process = start(MEMSTOW, "run", "--quiet", "-o", "x.mst", "--", sys.executable, "-c", code, stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, text=True)
assert process.stdout.readline() == "ready\n"
found = json.loads(memstow("ps", "--json").stdout)["processes"]
mine = [p for p in found if p["file"] == os.path.abspath("x.mst")]
assert len(mine) == 1, found
pid = str(mine[0]["pid"])
live = report(pid)
assert live["process"]["state"] == "running" and live["totals"]["live_bytes"] > 20_000_000
assert live["totals"] == report("x.mst")["totals"]
name = memstow("snapshot", pid).stdout.strip()
assert name.startswith("memstow.python") and f".{pid}." in name and name.endswith(".mst"), name
copy = report(name)
assert copy["process"]["kind"] == "snapshot" and copy["totals"] == live["totals"]
for document in live, copy:
    part = document["residency"]
    assert part["rss_bytes"] > 20_000_000 and part["rest_bytes"] <= part["rss_bytes"] * 0.02 + 4 * 2**20, part
assert "\n        0 B          0 " in memstow("diff", name, pid).stdout
assert "  total\n" in memstow("diff", name, pid).stdout
assert "process" in memstow("run", "-o", "x.mst", "true", status=2).stderr
memstow("snapshot", pid, "-o", "y.mst")
memstow("snapshot", pid, "-o", "y.mst")  # it replaces an earlier snapshot of ours
assert sorted(os.listdir()) == sorted(["x.mst", "y.mst", name])
process.stdin.write("\n")
process.stdin.close()
expect_exit(process, seconds=20)
