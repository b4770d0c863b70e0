# needs: comfyui
# timeout: 900
# alone
"""Three lifecycles of a real ComfyUI on the CPU end with nothing left, in time, and without growth: queue (one workflow
runs, another waits and never runs), cancel, child server. Each has thirty seconds. A life that takes more than ten is
repeated, up to three times, until it takes at most ten. If it never does, the test fails. On a machine with twice the
work that it can do, the test is skipped instead. shutdown_no_leaks_long has all six lifecycles."""
import support
from _comfyui import is_starved, lifecycles, prepare

prepare(quick=True)
slow = []
for life in lifecycles(("T3", "T5", "T6")):
    seconds, tries = life["gone_seconds"], 1
    while seconds > 10 and tries < 4:
        seconds, tries = lifecycles((life["test"],))[0]["gone_seconds"], tries + 1
    if seconds > 10:
        assert is_starved(), f"{life['test']} takes more than 10 s each time"
        slow.append(life["test"])
if slow:
    support.skip(f"{', '.join(slow)}: more than 10 s, on a machine with twice the work that it can do")
