# needs: comfyui
# timeout: 7200
# long
"""102 lifecycles of a real ComfyUI on the CPU, one after the other, end with nothing left."""
from _comfyui import lifecycles

lives = lifecycles(17, "--stacks=none")
assert len(lives) == 102
for life in lives:
    assert not life["left_processes"] and not life["left_traces"] and life["exit_status"] == 0, life
    assert not [why for why in life["reasons"] if not why.startswith(("took", "grew"))], life # those are of a busy machine
