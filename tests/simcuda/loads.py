# A program says when it loads a model. Memory that it allocates while it loads may move. Memory that it allocates in
# the model's scope at other times is left to the driver. Each case of _loads.c runs by itself, over the simulated
# driver (a test double).
from _simcuda import refusals, run_cases

run_cases("loads", 5, lambda case: {"SIMCUDA_CAPACITY": "128M", "MEMSTOW_CUDA_MOVES": "2M",
                                    "MEMSTOW_CUDA_SPARE": "0"})
[(because, left)] = refusals("weights_and_temporaries.mst").items()
assert "outside of the model's load phases" in because and left == 16 << 20, (because, left)
