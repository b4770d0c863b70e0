# long
# timeout: 7200
# A hundred thousand random steps of serving, using, moving and freeing device memory, with errors of the driver in between.
import os

import support

support.run(support.BUILD / "tests/unit/simcuda_moving", "--filter", "simcuda_moving/random*", timeout=7000,
            env={**os.environ, "SIMCUDA_ROUNDS": "1700"})
