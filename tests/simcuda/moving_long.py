# long
# timeout: 14400
# A million random steps of serving, using, moving and freeing device memory by one thread, and as many by three
# threads, with an error of the driver at every call in turn, over the simulated driver (a test double). The contents
# are right, and nothing is left in the driver.
import os

import support

ROUNDS = 1_000_000 // 60 + 1 # of 60 steps each
for steps in ("random_steps_with_errors", "random_steps_of_threads_with_errors"):
    support.run(support.BUILD / "tests/unit/simcuda_random", "--filter", f"simcuda_random/{steps}", timeout=7000,
                env={**os.environ, "SIMCUDA_ROUNDS": str(ROUNDS)})
