# Models move out of the device and back while there are several contexts, and while some of them end. memstow serves
# the models' device memory. Each case of _contexts.c runs by itself, over the simulated driver (a test double).
import pathlib, sys

import support
from _simcuda import run_cases, settings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stow"))
import _moving

folder = _moving.real_disk()
run_cases("contexts", 14, lambda case: settings(case, folder))

# The program freed memory after another context was reset. memstow still knew this memory.
cuda = support.report("reset_beside_another.mst")["cuda"]
assert not cuda["foreign_frees"] and not cuda["kinds"]["device"]["live_blocks"], cuda
assert not cuda["kinds"]["pool"]["live_blocks"], cuda
assert not list(folder.iterdir())
folder.rmdir()
