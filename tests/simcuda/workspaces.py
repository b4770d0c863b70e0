# A workspace of cuBLAS is made by chance in a model's scope. When the model leaves the device, the workspace stays
# there, and the trace says why. Each case of _workspaces.c runs by itself, over the simulated driver and cuBLAS (test
# doubles).
import support
from _simcuda import refusals, run_cases

run_cases("workspaces", 5, lambda case: {"SIMCUDA_CAPACITY": "256M", "MEMSTOW_CUDA_MOVES": "2M"})
because = "a library keeps its workspace there"
stays = {case: refusals(f"{case}.mst").get(because)
         for case in ("handed_over", "its_own", "with_each_product", "beside_weights", "freed")}
assert stays == {"handed_over": 32 << 20, "its_own": None, "with_each_product": 4 << 20, "beside_weights": 8 << 20,
                 "freed": None}, stays
not_served = ("it is smaller than MEMSTOW_CUDA_MOVES, or it is in an explicit pool, made by a library, "
              "kept for IPC, allocated outside of the model's load phases, or in a block of another owner")
assert refusals("its_own.mst")[not_served] == 5 << 20, refusals("its_own.mst")
support.memstow("decisions", "handed_over.mst", "--check")
