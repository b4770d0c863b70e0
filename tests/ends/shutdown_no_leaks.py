# needs: comfyui
# timeout: 900
"""Six lifecycles of a real ComfyUI on the CPU end with nothing left: start, load, queue, run to completion, cancel, child server."""
from _comfyui import lifecycles

for life in lifecycles(1, "--stacks=none"):
    assert not life["left_processes"] and not life["left_traces"] and life["exit_status"] == 0, life
    assert not [why for why in life["reasons"] if not why.startswith(("took", "grew"))], life # those are of a busy machine
