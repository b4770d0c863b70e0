"""watch names shared memory, temporary files, named sockets and System V segments that outlive a program. It does not
name files on the program's command line, the file of its output, files in its working directory, and files of other
programs."""
import os, pathlib, re, subprocess

import support

from _ends import faults, watch

program = faults()
other = pathlib.Path(f"/dev/shm/memstow-ends-other-{os.getpid()}")
left = ""
try:
    other.write_text("another's")
    left, _ = watch(program, "here", "seconds=4", "shared", "temporary", "named-socket", "system-v", "handle",
                    options=("--strict",), status=1)
    for line in (r"  shared memory /dev/shm/memstow-ends-\d+, 1.0 MiB, of faults \(pid \d+\)",
                 r"  temporary file /tmp/memstow-ends-\w{6}, 25 B, of faults",
                 r"  socket /tmp/memstow-ends-\d+.socket, of faults",
                 r"  System V shared memory \d+, 64.0 KiB, of faults"):
        assert re.search(line, left), (line, left)
    assert "other" not in left and "held.txt" not in left and len(left.splitlines()) == 5, left
    asked = pathlib.Path(f"/tmp/memstow-ends-asked-{os.getpid()}")
    text, _ = watch("sh", "-c", f"exec 3>{asked}; sleep 2", options=("--strict",))
    assert text == "", text
    written = pathlib.Path(f"/tmp/memstow-ends-written-{os.getpid()}")
    with open(written, "w") as log: # as `memstow watch -- CMD > /tmp/log` does
        done = subprocess.run([support.MEMSTOW, "watch", "--quiet", "--strict", "--grace=3s", "--", "sleep", "2"],
                              stdout=log, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, ""), done
finally:
    other.unlink(missing_ok=True)
    made = [f"/tmp/memstow-ends-{what}-{os.getpid()}" for what in ("asked", "written")]
    for path in re.findall(r"(/(?:tmp|dev/shm)/memstow-ends-[\w.]+)", left) + made:
        pathlib.Path(path).unlink(missing_ok=True)
    for line in pathlib.Path("/proc/sysvipc/shm").read_text().splitlines()[1:]:
        if line.split()[1] in re.findall(r"System V shared memory (\d+)", left):
            subprocess.run(["ipcrm", "-m", line.split()[1]])
