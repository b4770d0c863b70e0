# needs: comfyui
# timeout: 900
"""Six lifecycles of a real ComfyUI on the CPU end with nothing left, in time, and without growth: start, load, queue
(one workflow runs, another waits and never runs), run to completion, cancel, child server. Each has thirty seconds.
shutdown_no_leaks_long.py asks for ten seconds, with nothing beside it."""
from _comfyui import lifecycles, prepare

prepare()
assert len(lifecycles()) == 6 # it checks each of them
