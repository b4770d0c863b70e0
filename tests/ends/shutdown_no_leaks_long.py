# needs: comfyui
# timeout: 7200
# long
# alone
"""102 lifecycles of a real ComfyUI on the CPU, one after the other, end with nothing left, in time, and without growth.
Each takes at most thirty seconds. In each of the tests T1 to T6, most lives take at most ten seconds. Lives on a busy
machine do not count for this. If no life of one of these tests counts, this file is skipped."""
import statistics

import support
from _comfyui import TESTS, is_starved, lifecycles, prepare

prepare()
lives, seconds = 0, {test: [] for test in TESTS}
for number in range(17):
    for life in lifecycles():
        lives += 1
        if not is_starved():
            seconds[life["test"]].append(life["gone_seconds"])
assert lives == 102
print(seconds)
for test, counted in seconds.items():
    assert not counted or statistics.median(counted) <= 10, (test, counted)
if uncounted := [test for test, counted in seconds.items() if not counted]:
    support.skip(f"{', '.join(uncounted)}: each life was on a machine with twice the work that it can do")
