# needs: comfyui
# timeout: 7200
# long
"""A hundred lifecycles of a real ComfyUI on the CPU, one after the other, end with nothing left."""
from _comfyui import lifecycles

lives = lifecycles(20, "--stacks=none")
assert len(lives) == 100
for life in lives:
    assert not life["left_processes"] and not life["left_traces"] and life["exit_status"] == 0, life
    assert not [why for why in life["reasons"] if not why.startswith(("took", "grew"))], life # those are of a busy machine
