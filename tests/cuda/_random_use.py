"""Runs _random_use.c with a few seeds. The long variant has more seeds and more steps."""
import pathlib, sys

import support, _simulated

HERE = pathlib.Path(__file__)
long = "random_use_long" in sys.argv[0]
program = _simulated.program(HERE.with_name("_random_use.c"), _simulated.LIBRARIES / "libcuda.so.1",
                             _simulated.LIBRARIES / "13/libcudart.so.13", name="random_client")
environment = _simulated.environment(SIMCUDA_FILL="0", SIMCUDA_CAPACITY="2G")
for seed in range(1, 26 if long else 3):
    done = support.track(program, seed, 10000 if long else 3000, env=environment, timeout=300)
    lines = [line for line in done.stdout.split("\n") if line.startswith("expect")]
    wrong = _simulated.wrong(lines, "out.mst")
    assert lines and not wrong, f"seed {seed}:\n" + "\n".join(wrong)
