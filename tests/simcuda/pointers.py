# Attributes of pointers to memory that memstow serves, over the simulated driver (a test double). They must be the same
# as for the driver's own memory of that kind, whether the memory is in place, out or back.
import support
from _simcuda import BUILD, environment

wish = {"MEMSTOW_CUDA_MOVES": "2M", "SIMCUDA_CAPACITY": "768M", "SIMCUDA_FILL": "0"}
done = support.track(BUILD / "pointers", env=environment(**wish), file="pointers.mst")
assert done.stdout == "ok\n", done.stdout + done.stderr
