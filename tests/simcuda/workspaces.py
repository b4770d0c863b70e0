# A workspace of cuBLAS that a model's scope happened to make stays on the device when the model leaves it, over the
# simulated driver and cuBLAS (test doubles): each case of _workspaces.c by itself, and what the trace says of it.
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
