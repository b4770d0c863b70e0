# needs: comfyui
# timeout: 900
# alone
"""Three of lifecycle's tests with a real ComfyUI on the CPU: T3 (one workflow runs, another waits and never runs), T5
(cancel) and T6 (child server). Each life ends within thirty seconds, with nothing left and without growth. A life that
takes more than ten seconds is repeated, up to three times. If all four lives take more than ten seconds, this test
fails; on a machine with twice the work that it can do, it is skipped instead. shutdown_no_leaks_long has all six of
lifecycle's tests."""
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
