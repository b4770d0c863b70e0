#!/usr/bin/env python3
# timeout: 200
"""A process that is killed at its start leaves no file, or a file that can be read and that the next run may
replace."""
import os, random, time

from support import HERE, LIBRARY, memstow, report, start

files = HERE / "files"
files.mkdir()
environment = {**os.environ, "LD_PRELOAD": str(LIBRARY), "MEMSTOW_OUT": f"{files}/%p.mst"}
for _ in range(400):
    process = start("sleep", "5", env=environment)
    time.sleep(random.random() * 0.003)
    process.kill()
    process.wait()
left = sorted(files.iterdir())
assert left, "every process was killed before it had a file"
for number, file in enumerate(left): # the names of functions take most of the time of a report
    if number % 10:
        memstow("report", file, "--by=thread")
    else:
        report(file)
memstow("run", "--quiet", "-o", left[0], "--", "true")
print(f"{len(left)} files open")
