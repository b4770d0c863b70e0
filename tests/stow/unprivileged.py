# needs: root
# timeout: 600
"""The cases of moves.py and returns.py, run by a user who may use neither userfaultfd nor /proc/PID/map_files. Idle
owners move nevertheless."""
import os, pathlib, shutil

import _moving, support

if os.geteuid() != 0:
    support.skip("needs root, to become another user")
ATOMIC = ("round_trip_by_move", "round_trip_by_remap", "freed_while_moving")
if pathlib.Path("/proc/sys/vm/unprivileged_userfaultfd").read_text().strip() != "0":
    support.skip("every user may use userfaultfd here")
library = support.HERE / "libmemstow_moves.so"
shutil.copy(_moving.LIBRARY, library)
library.chmod(0o755)
support.HERE.chmod(0o777)
_moving.LIBRARY = library
_moving.program("cases").chmod(0o755)
if support.run(support.HERE / "cases", preexec_fn=support.as_nobody, status=None).returncode:
    support.skip("another user cannot reach the folder of temporary files")
_moving.run_cases("cases", "returns", only=lambda case: case not in ATOMIC, preexec_fn=support.as_nobody)
