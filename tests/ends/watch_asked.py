"""A process that ignores SIGTERM is named while it is still there, and gets SIGKILL under --end. watch passes its own
SIGTERM on."""
import re, signal, subprocess, time

from _ends import faults, pids
from support import MEMSTOW, is_gone, start

program = faults()
process = start(MEMSTOW, "watch", "--quiet", "--grace=2s", "--end", "--strict", "--", program, "here", "ignore",
                "stuck", stderr=subprocess.PIPE, text=True)
time.sleep(1.5)
process.send_signal(signal.SIGTERM)
text = process.communicate(timeout=60)[1]
assert process.returncode == 128 + signal.SIGKILL, (process.returncode, text)
assert re.search(r"\S+ s after faults was asked to end, 1 process is still there\n"
                 r"  faults, pid \d+ \(the program itself\)", text), text
assert re.search(r"\d+ stuck, since \S+ s: in futex", text) and "ended on SIGKILL" in text, text
assert is_gone(pids(text)[0])

# A second request while that goes on ends the five seconds of waiting; this process would end by itself within them.
process = start(MEMSTOW, "watch", "--quiet", "--grace=0s", "--end", "--", program, "here", "ignore", "seconds=5",
                stderr=subprocess.PIPE, text=True)
for _ in range(2):
    time.sleep(0.8)
    process.send_signal(signal.SIGTERM)
assert "ended on SIGKILL" in process.communicate(timeout=60)[1]

process = start(MEMSTOW, "watch", "--quiet", "--", program, "here", stderr=subprocess.PIPE, text=True)
time.sleep(1)
process.send_signal(signal.SIGTERM)
assert process.communicate(timeout=60)[1] == "" and process.returncode == 128 + signal.SIGTERM
