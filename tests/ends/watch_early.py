# timeout: 200
"""watch ends as soon as nothing is left. If a program leaves nothing, watch says so. Leftovers change the exit code
only under --strict."""

from _ends import faults, watch
from support import memstow

program = faults()
text, seconds = watch(program, "seconds=2", grace="60s", options=("--strict",))
assert text == "" and seconds < 60, (text, seconds)
text, seconds = watch(program, "seconds=10", grace="60s", options=("--strict",))
assert " s after faults ended, 1 process is still there" in text and "memstow: nothing is left, " in text, text
assert seconds < 60
text, _ = watch(program, "seconds=6", grace="1s")
assert " s after faults ended, 1 process is still there" in text and "nothing is left" not in text, text
text, _ = watch(program, "seconds=6", grace="1s", options=("--strict",), status=1)
assert memstow("watch", "--", "true").stderr.endswith("memstow: nothing is left\n")
assert memstow("watch", "--quiet", "--strict", "--", "sh", "-c", "exit 3", status=3).stderr == ""
