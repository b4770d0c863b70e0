# needs: comfyui
# timeout: 900
"""Five lifecycles of a real ComfyUI on the CPU end with nothing left: start, queue, run to completion, cancel, child server."""
from _comfyui import lifecycles

for life in lifecycles(1, "--stacks=none"):
    assert life["verdict"] != "failed", life
    assert not life["left_processes"] and not life["left_traces"] and life["growth_bytes"] < 5e6, life
