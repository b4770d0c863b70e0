# timeout: 300
# Memory is pinned ahead of need, on a thread of memstow's: the first move pins nothing; limits, captures, errors, the
# end of contexts and of the program, forks. Over the simulated driver (a test double): each case of _ahead.c by itself.
from _simcuda import run_cases

PINNED = {"in_large_pieces": "600M", "within_the_limit": "24M"}


def wish(case):
    large = {"SIMCUDA_CAPACITY": "400M", "SIMCUDA_FILL": "0"} if case == "in_large_pieces" else {}
    off = {"MEMSTOW_CUDA_AHEAD": "0"} if case == "turned_off" else {}
    return {"SIMCUDA_CAPACITY": "128M", "MEMSTOW_CUDA_MOVES": "2M", "MEMSTOW_CUDA_VERIFY": "1",
            "MEMSTOW_CUDA_PINNED": PINNED.get(case, "100M"), **large, **off}


run_cases("ahead", 15, wish)
