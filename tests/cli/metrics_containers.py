"""`memstow metrics --all` on a host names processes in containers by the ids that they have on the host, as
`memstow ps` does. In their containers, both processes here have the same id."""
import json, re, subprocess

from support import HERE, MEMSTOW, PYTHON, memstow, run, skip, start, wait_for

APART = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
if run(*APART, "true", status=None).returncode:
    skip("no namespace of processes can be made here")
INSIDE = "import os; print(os.getpid(), flush=True); input()"
workers = [start(*APART, MEMSTOW, "run", "--quiet", "-o", HERE / f"{number}.mst", "--", PYTHON, "-c", INSIDE,
                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for number in range(2)]
inside = [worker.stdout.readline().strip() for worker in workers]
assert inside[0] == inside[1], inside


def outside():
    """Their ids on the host."""
    rows = json.loads(memstow("ps", "--json").stdout)["processes"]
    return [row["pid"] for row in rows if row["file"].startswith(f"{HERE}/")]


wait_for(lambda: len(outside()) == 2, what="both in the list")
pids = outside()
named = re.findall(r'^memstow_peak_live_bytes\{pid="(\d+)"', memstow("metrics", "--all").stdout, re.M)
assert len(named) == len(set(named)) and {str(pid) for pid in pids} <= set(named), (named, pids, inside)
for pid in pids:
    alone = memstow("metrics", pid, "--leaks").stdout
    assert set(re.findall(r'pid="(\d+)"', alone)) == {str(pid)}, alone
for worker in workers:
    worker.communicate("\n", timeout=60)
    assert worker.returncode == 0, worker.returncode
