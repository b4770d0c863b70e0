# needs: comfyui
# timeout: 7200
# long
"""102 lifecycles of a real ComfyUI on the CPU, one after the other, end with nothing left, in time, and without growth: of each kind
most are gone within ten seconds."""
import statistics

from _comfyui import TESTS, lifecycles, prepare

prepare()
lives = lifecycles(17)
assert len(lives) == 102
for test in TESTS:
    seconds = [life["gone_seconds"] for life in lives if life["test"] == test]
    assert len(seconds) == 17 and statistics.median(seconds) <= 10, (test, seconds)
