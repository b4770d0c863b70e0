# timeout: 300
"""A series of a program that leaks between its runs, so that no run owns the memory. The leak is found by readings
alone, and it is found again in the file of the series. All other commands read this file as a snapshot. If the recorder
of a series is killed, the program goes on and the file is whole. A file that is not memstow's is not replaced. A series
goes on when its program becomes another program by exec. A program without runs is read from time to time."""
import json, pathlib, signal, subprocess, time

import support
from _leaks import Program, brief, functions, leaks

PROGRAM = pathlib.Path("program.py")
PROGRAM.write_text(f"""
import gc, os, sys, time
sys.path.insert(0, {str(support.ROOT / "tools/python")!r})
if len(sys.argv) == 2:
    print("started", flush=True)
    sys.stdin.readline()
    os.execv(sys.executable, [sys.executable, *sys.argv, "again"])
import memstow
kept = []
def between():
    kept.append(bytearray(30000))
print("ready", flush=True)
while True:
    with memstow.run("a run"):
        gc.collect()
    between()
    time.sleep(float(sys.argv[1]))
""")


def check(document):
    assert [functions(leak["stack"])[0] for leak in document["leaks"]] == ["between"], brief(document)
    leak = document["leaks"][0]
    assert leak["judged_by"] == "readings" and leak["oldest_run"] is None and leak["node"] is None, leak
    assert 25_000 <= leak["bytes_per_run"] <= 35_000, leak


def record(pid, file, *options, status=1):
    done = support.memstow("leaks", pid, f"--series={file}", "--json", *options, status=status, timeout=200)
    return json.loads(done.stdout) if done.stdout else done.stderr


# On a busy machine, several runs may become one reading. Then the test slows the program down.
for pace in (0.1, 0.5, 2.0):
    program = Program(support.PYTHON, PROGRAM, pace, "again", file=f"{pace}.mst")
    program.wait_for("ready")
    document = record(program.pid(), "series.mst", "--runs=24", status=None)
    if document["readings"]["judged"] >= 9:
        break
    program.process.kill()
check(document)
again = leaks("series.mst", status=1)
check(again)
assert again["readings"] == document["readings"], (again["readings"], document["readings"])
assert again["leaks"] == document["leaks"], (again["readings"], document["readings"])
live = support.report("series.mst")["totals"]["live_bytes"]
assert live >= 24 * 30000
# The file has memory over time, too: the curve that grows, and the marks of the runs.
history = support.report("series.mst")["history"]
curve = [host + mapped for host, mapped in zip(history["host_bytes"], history["mapped_bytes"])]
assert len(curve) >= 4 and history["seconds"] == sorted(history["seconds"]), history["seconds"]
assert abs(curve[-1] - live) <= history["within_bytes"] and curve[-1] - min(curve) >= 20 * 30000, (curve, live)
assert sum(mark["kind"] == "run_ended" for mark in history["marks"]) >= 24, history["marks"]
# Other reports show the curve of a series, too. --massif has a point without call stacks for the start and for each
# reading, and in the end a point with call stacks.
massif = support.memstow("report", "--massif", "series.mst").stdout
curve = [int(row.split("=")[1]) for row in massif.splitlines() if row.startswith("mem_heap_B=")]
assert massif.count("heap_tree=empty") == document["readings"]["taken"] + 1 and curve[-1] == live, (document, curve)
assert curve[-2] - curve[2] >= 20 * 30000, curve
assert pathlib.Path("series.mst").stat().st_size < 2**21

# ---- a recorder that is killed

recorder = support.start(support.MEMSTOW, "leaks", program.pid(), "--series=killed.mst", stdout=subprocess.DEVNULL)
support.wait_for(pathlib.Path("killed.mst").exists, what="the first of the series")
recorder.send_signal(signal.SIGKILL)
recorder.wait()
leaks("killed.mst")
assert program.process.poll() is None
runs = support.report(program.file, "--by=run")["totals"]["live_bytes"]
support.wait_for(lambda: support.report(program.file)["totals"]["live_bytes"] > runs, what="another run")
pathlib.Path("mine.txt").write_text("mine")
assert "not a memstow file" in record(program.pid(), "mine.txt",
                                      status=2) and pathlib.Path("mine.txt").read_text() == "mine"
program.process.terminate()

# ---- a program that becomes another

program = Program(support.PYTHON, PROGRAM, 0.1, file="exec.mst")
program.wait_for("started")
recorder = support.start(support.MEMSTOW, "leaks", program.pid(), "--series=exec.series", "--runs=3", "--json",
                         stdout=subprocess.PIPE, text=True)
time.sleep(0.5)
program.go_on()
program.wait_for("ready")
document = json.loads(recorder.communicate(timeout=100)[0])
assert recorder.returncode in (0, 1, 5) and document["runs"]["ended"] >= 3, document["runs"]
program.process.terminate()

# ---- a program without runs

pathlib.Path("runless.py").write_text("""
import time
kept = []
def handler():
    kept.append(bytearray(30000))
print("ready", flush=True)
while True:
    handler()
    time.sleep(0.02)
""")
program = Program(support.PYTHON, "runless.py", file="runless.mst")
program.wait_for("ready")
recorder = support.start(support.MEMSTOW, "leaks", program.pid(), "--series=runless.series", "--every=200ms", "--json",
                         stdout=subprocess.PIPE, text=True)
written = pathlib.Path("runless.series")
support.wait_for(lambda: written.exists() and leaks(written)["readings"]["taken"] >= 16, what="16 readings")
recorder.send_signal(signal.SIGINT)
document = json.loads(recorder.communicate(timeout=100)[0])
assert document["readings"]["judged"] >= 9 and document["runs"]["ended"] == 0, (document["readings"], document["runs"])
assert recorder.returncode == 1, brief(document)
assert [functions(leak["stack"])[0] for leak in document["leaks"]] == ["handler"], brief(document)
assert leaks("runless.series", status=1)["leaks"] == document["leaks"]
program.process.terminate()
