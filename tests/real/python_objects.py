#!/usr/bin/env python3
# timeout: 200
"""With --python-objects each Python object is a block of its own at its Python line, and all objects are found. Without
this option, the same line holds arenas (mappings of 1 MiB each), and no single object is seen."""
import os

import support
from _pythons import HERE, pythons

SCRIPT = HERE / "_python_objects.py"
COUNT, SIZE = 20_000, 500
LINE = 1 + next(i for i, text in enumerate(SCRIPT.read_text().split("\n")) if "return list" in text)


def planted(python, *options):
    """Runs the script, and returns the report and a list of the report's sites: those whose innermost Python frame is
    the line that plants."""
    support.track(python, "-S", SCRIPT, options=options, timeout=60)
    report = support.report()
    frames = [(next((f for f in site["stack"] if f["kind"] == "python"), {}), site) for site in report["sites"]]
    return report, [site for frame, site in frames
                    if (frame.get("function"), frame.get("line")) == ("plant", LINE) and frame["file"] == str(SCRIPT)]


def objects(sites):
    return sum(site["live_blocks"] for site in sites if site["live_bytes"] == SIZE * site["live_blocks"])


found = pythons()
if not found:
    support.skip("no Python here whose frames can be read")
os.environ.pop("PYTHONMALLOC", None)
for python, version in found.items():
    one_by_one, sites = planted(python, "--python-objects")
    assert objects(sites) == COUNT, (version, objects(sites), sites[:3])
    in_arenas, sites = planted(python)
    assert objects(sites) == 0, (version, sites[:3])
    arenas = [site for site in sites if site["live_bytes"] == site["live_blocks"] << 20]
    assert sum(site["live_blocks"] for site in arenas) >= COUNT * SIZE >> 20, (version, sites[:3])
    gone = in_arenas["totals"]["mapped"]["live_bytes"] - one_by_one["totals"]["mapped"]["live_bytes"]
    assert gone >= COUNT * SIZE, (version, gone)
    print(f"{version}: mappings with arenas are {gone} bytes more")
