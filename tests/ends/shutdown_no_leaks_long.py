# needs: comfyui
# timeout: 7200
# long
# alone
"""102 lifecycles of a real ComfyUI on the CPU, one after the other, end with nothing left, in time, and without growth.
Each takes at most thirty seconds. Of each test, most lives take at most ten seconds; lives on a busy machine do not
count."""
import statistics

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
for test, of_test in seconds.items():
    assert not of_test or statistics.median(of_test) <= 10, (test, of_test)
