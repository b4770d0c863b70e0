# timeout: 300
# Memory moves also where the driver is slow, waits, or takes more memory. Over the simulated driver (a test double), a
# part of the cases; modes_long.py runs all.
import os, sys

import support, _modes, _simcuda

sys.path.insert(0, str(support.ROOT / "tests/cuda"))
import _simulated

CASES = {"stays_out", "frees", "replays", "pointers", "half_way", "out_and_back", "freed_memory_is_shown"}
assert CASES <= set(_modes.all_cases())
_modes.run(CASES)

# rooms_long.py sets a mode in the environment of the runner. So the variables of a mode must get through the runner,
# and through the two functions that make an environment for the tests of this room and of cuda.
for mode, settings in _modes.MODES.items():
    assert not [name for name in settings if name.startswith("MEMSTOW")], f"{mode}: the runner takes these out"
os.environ.update(_modes.MODES["keeps"])
for made in (_simcuda.environment(), _simulated.environment()):
    assert made["MEMSTOW_CUDA_KEEP"] == "64M", made
assert _simcuda.environment(MEMSTOW_CUDA_KEEP="8M")["MEMSTOW_CUDA_KEEP"] == "8M", "a case's own setting counts"
