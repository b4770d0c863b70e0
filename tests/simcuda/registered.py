# Host memory that is registered with a device does not move; neither does memory that a busy device may read without
# registration. The trace has the reasons. Each case of _registered.c runs by itself, over the simulated driver (a test
# double).
import pathlib, sys

from _simcuda import refusals, run_cases

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "stow"))
import _moving

folder = _moving.real_disk()


def wish(case):
    moves = {} if case == "read_in_own_context" else {"MEMSTOW_CUDA_MOVES": "2M", "MEMSTOW_CUDA_VERIFY": "1"}
    pageable = {"SIMCUDA_PAGEABLE": "1"} if case.startswith("read_") else {}
    return {"SIMCUDA_CAPACITY": "128M", "MEMSTOW_STOW_DIR": str(folder), **moves, **pageable}


run_cases("registered", 6, wish)
for case, because in (("registered", "a device knows its address"),
                      ("read_by_the_device",
                       "a device can use it where it is (HMM, ATS), and is busy, or the owner is not idle")):
    assert because in refusals(f"{case}.mst"), f"{case}: {refusals(f'{case}.mst')}"
assert not list(folder.iterdir())
folder.rmdir()
