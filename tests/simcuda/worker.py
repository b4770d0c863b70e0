# timeout: 200
# What memstow's worker moves by itself (MEMSTOW_IDLE): the driver is called by a thread that has the program's
# descriptors, and not after the program has ended. Over the simulated driver (a test double): each case of _worker.c by
# itself.
import support
from _simcuda import BUILD, environment, run_cases


def wish(case):
    pageable = {"SIMCUDA_PAGEABLE": "1"} if case == "read_by_a_device" else {}
    return {"SIMCUDA_CAPACITY": "128M", "MEMSTOW_CUDA_MOVES": "2M", "MEMSTOW_IDLE": "1", **pageable}


run_cases("worker", 3, wish)

# With MEMSTOW_CUDA_KEEP, memstow hashes up to sixteen blocks at once. If the program ends during this work, it does not
# wait until all these blocks are copied.
support.track(BUILD / "worker", "ends_meanwhile", file="kept.mst",
              env=environment(MEMSTOW_CUDA_KEEP="64M", **wish("ends_meanwhile")))
