# needs: comfyui
# timeout: 900
# alone
"""Six lifecycles of a real ComfyUI on the CPU end with nothing left, in time, and without growth: start, load, queue
(one workflow runs, another waits and never runs), run to completion, cancel, child server. A life that took more than
ten seconds is repeated, and must be faster then. On a machine with twice the work that it can do, each life has thirty
seconds."""
from _comfyui import is_starved, lifecycles, prepare

prepare()
for life in lifecycles():
    seconds, tries = life["gone_seconds"], 1
    while seconds > 10 and not is_starved():
        assert tries < 4, f"{life['test']} takes more than 10 s each time"
        seconds, tries = lifecycles((life["test"],))[0]["gone_seconds"], tries + 1
