"""watch ends all processes that are left, even if their number exceeds memstow's limit of descriptors. A stopped
process ends with SIGTERM. No process is shown as started by memstow."""
import pathlib, re

from _ends import faults, pids
from support import MEMSTOW, is_gone, start
import subprocess

pathlib.Path("many").write_text("i=0; while [ $i -lt 60 ]; do sleep 600 & i=$((i+1)); done; sleep 0.5\n")
process = start("sh", "-c", 'ulimit -n 32; exec "$0" watch --quiet --stacks=none --grace=1s --end --strict -- sh many',
                MEMSTOW, stderr=subprocess.PIPE, text=True)
text = process.communicate(timeout=60)[1]
assert process.returncode == 1 and "60 processes are still there" in text, text
assert text.count(": ended on SIGTERM\n") == 60 and "gone" not in text, text
assert all(is_gone(pid) for pid in set(pids(text)))

process = start(MEMSTOW, "watch", "--quiet", "--grace=1s", "--end", "--", faults(), "stopped", stderr=subprocess.PIPE,
                text=True)
text = process.communicate(timeout=60)[1]
assert process.returncode == 0 and re.search(r"faults, pid \d+: ended on SIGTERM", text), text
assert f"process {process.pid} " not in text, text
