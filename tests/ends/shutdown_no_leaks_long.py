# needs: comfyui
# timeout: 7200
# long
"""A hundred lifecycles of a real ComfyUI on the CPU, one after the other, end with nothing left."""
from _comfyui import lifecycles

lives = lifecycles(20, "--stacks=none")
assert len(lives) == 100
for life in lives:
    assert life["verdict"] != "failed", life
    assert not life["left_processes"] and not life["left_traces"] and life["growth_bytes"] < 5e6, life
