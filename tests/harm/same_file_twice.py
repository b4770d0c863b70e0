"""Several processes want one file at the same time: the first one gets it, and none loses its ledger."""
import os, pathlib, re, subprocess

from support import LIBRARY, MEMSTOW, report, start, wait_for

runs = [subprocess.Popen([MEMSTOW, "run", "-o", "same.mst", "sleep", "1"], stderr=subprocess.PIPE, text=True)
        for _ in range(8)]
messages = [run.communicate()[1] for run in runs]
assert {run.returncode for run in runs} <= {0, 2}, messages
for run, message in zip(runs, messages):
    if run.returncode == 2:
        assert re.search(r"same.mst: is the ledger of process \d+, which still runs", message), message
        continue
    file = message.split("memstow report ")[1].strip()
    assert report(file)["process"]["state"] == "exited", message
    aside = file != "same.mst"
    assert ("another process was writing same.mst" in message) == aside, message
files = list(pathlib.Path(".").glob("same.mst*"))
assert len({report(f)["process"]["run_id"] for f in files}) == len(files) == [
    r.returncode for r in runs].count(0), files

# The second process certainly meets the ledger of a running process, because it is started without `memstow run`, which
# would look for that ledger first.
first = start(MEMSTOW, "run", "--quiet", "-o", "one.mst", "sleep", "60")
wait_for(pathlib.Path("one.mst").exists, what="the file")
before = report("one.mst")["process"]["pid"]
env = {**os.environ, "LD_PRELOAD": str(LIBRARY), "MEMSTOW_OUT": os.path.abspath("one.mst")}
second = subprocess.run(["sh", "-c", "exec sh -c 'echo $$'"], env=env, stdout=subprocess.PIPE, text=True, check=True)
assert report("one.mst")["process"]["pid"] == before and report("one.mst")["process"]["state"] == "running"
pid = second.stdout.strip()
assert {p.name for p in pathlib.Path(".").glob("one.mst*")} == {"one.mst", f"one.mst.{pid}", f"one.mst.{pid}.x0"}
assert report(f"one.mst.{pid}")["process"]["exec_generation"] == 1
first.kill()
