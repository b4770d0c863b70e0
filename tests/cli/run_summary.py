"""The summary: figures of one scope that add up, the program that holds the most, and a next step that can be typed."""
import pathlib, re
from support import PYTHON, memstow, report

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def figures(text):
    """{first words of a line: (bytes, blocks)}"""
    found = re.findall(r"^  +(\S[\w ]*?) {2,}([\d.]+) (\w*B)(?: in ([\d,]+) blocks?)?$", text, re.M)
    return {name: (float(number) * UNITS[unit], int((blocks or "0").replace(",", ""))) for name, number, unit, blocks in found}


hold = "import os, mmap; a = bytearray(3 << 20); b = mmap.mmap(-1, 5 << 20); b[0] = 1; os._exit(0)"
done = memstow("run", "-o", "one.mst", PYTHON, "-Sc", hold)
found, totals = figures(done.stderr), report("one.mst")["totals"]
for name, key in (("live at end", totals), ("of it heap", totals["host"]), ("of it mapped", totals["mapped"])):
    assert abs(found[name][0] - key["live_bytes"]) <= key["live_bytes"] * 0.02 + 1, (done.stderr, key)
    assert found[name][1] == key["live_blocks"], (done.stderr, key)
assert found["live at end"][1] == found["of it heap"][1] + found["of it mapped"][1], done.stderr
assert found["peak"][0] >= found["live at end"][0] * 0.98 and found["allocated"][1] == totals["allocated_blocks"], done.stderr
assert "most live" not in done.stderr
done = memstow("run", "-o", "tree.mst", "sh", "-c", '"$0" -Sc "$1"; true', PYTHON, hold)
line = re.search(r"\n  most live +([\d.]+) MiB in (python\S*) \(pid (\d+)\):\n +memstow report (tree.mst.\d+)\n", done.stderr)
assert line and report(line[4])["totals"]["live_bytes"] >= 8 << 20 and line[4].endswith(line[3]), done.stderr
assert done.stderr.endswith("\n  next           memstow report tree.mst\n"), done.stderr

# A number would be taken for a pid.
done = memstow("run", "-o", "12345", "true")
assert done.stderr.endswith("memstow report ./12345\n") and pathlib.Path("12345").exists(), done.stderr
memstow("report", "./12345")
