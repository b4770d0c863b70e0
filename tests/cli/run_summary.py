"""The figures of the summary add up. If there are several processes, the summary names the process that holds most. It
ends with a command that can be typed next."""
import os, pathlib, re, subprocess
from support import HERE, MEMSTOW, PYTHON, memstow, report

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def figures(text):
    """{first words of a line: (bytes, blocks)}"""
    found = re.findall(r"^  +(\S[\w ]*?) {2,}([\d.]+) (\w*B)(?: in ([\d,]+) blocks?)?$", text, re.M)
    return {name: (float(number) * UNITS[unit], int((blocks or "0").replace(",", ""))) for name, number, unit,
            blocks in found}


hold = "import os, mmap; a = bytearray(3 << 20); b = mmap.mmap(-1, 5 << 20); b[0] = 1; os._exit(0)"
done = memstow("run", "-o", "one.mst", PYTHON, "-Sc", hold)
found, totals = figures(done.stderr), report("one.mst")["totals"]
for name, key in (("live at end", totals), ("of it heap", totals["host"]), ("of it mapped", totals["mapped"])):
    assert abs(found[name][0] - key["live_bytes"]) <= key["live_bytes"] * 0.02 + 1, (done.stderr, key)
    assert found[name][1] == key["live_blocks"], (done.stderr, key)
assert found["live at end"][1] == found["of it heap"][1] + found["of it mapped"][1], done.stderr
assert found["peak"][0] >= found["live at end"][0] * 0.98, done.stderr
assert found["allocated"][1] == totals["allocated_blocks"], done.stderr
assert "most live" not in done.stderr
done = memstow("run", "-o", "tree.mst", "sh", "-c", '"$0" -Sc "$1"; true', PYTHON, hold)
line = re.search(r"\n  most live +([\d.]+) MiB in (python\S*) \(pid (\d+)\):\n +\S*/memstow report (tree.mst.\d+)\n",
                 done.stderr)
assert line and report(line[4])["totals"]["live_bytes"] >= 8 << 20 and line[4].endswith(line[3]), done.stderr
assert done.stderr.endswith(f"\n  next           {MEMSTOW} report tree.mst\n"), done.stderr
assert "\n  more files     1: tree.mst.*\n" in done.stderr, done.stderr

# A file whose name is a number gets a path, because `memstow report 12345` would take the number for a PID.
done = memstow("run", "-o", "12345", "true")
assert done.stderr.endswith("/memstow report ./12345\n") and pathlib.Path("12345").exists(), done.stderr
memstow("report", "./12345")

# The summary uses the name by which the command was called, and the file name that was given.
os.mkdir("d")
for given, shown in (("./x.mst", "./x.mst"), ("d/x.mst", "d/x.mst"), (f"{HERE}/x.mst", f"{HERE}/x.mst"),
                     ("d/../7", "d/../7"), ("%n.mst", "true.mst"), ("d/%n.mst", f"{HERE}/d/true.mst")):
    assert memstow("run", "-o", given, "true").stderr.endswith(f"{MEMSTOW} report {shown}\n"), (given, shown)
found = subprocess.run(["memstow", "run", "-o", "x.mst", "true"], stderr=subprocess.PIPE, text=True,
                       env={**os.environ, "PATH": f"{pathlib.Path(MEMSTOW).parent}:{os.environ['PATH']}"}).stderr
assert found.endswith("  next           memstow report x.mst\n"), found

# The summary points to memory that an interpreter frees at its end, and names a program that went on untracked.
done = memstow("run", "-o", "tidy.mst", PYTHON, "-Sc", "a = [bytearray(1 << 20) for i in range(60)]")
assert (f"\n  since freed    what it held at its peak:\n                 {MEMSTOW} report --peak "
        f"tidy.mst\n") in done.stderr, done.stderr
assert "since freed" not in memstow("run", "-o", "one.mst", PYTHON, "-Sc", hold).stderr
done = memstow("run", "-o", "gone.mst", "env", "-i", "/bin/true")
assert "went on as another program (exec) that is not" in done.stderr, done.stderr
