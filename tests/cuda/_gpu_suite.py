"""Shared by the tests of the GPU suite, tests/gpu: runs parts of it on this machine, without a GPU or over the
simulated driver, a test double."""
import os, re, sys

import support, _simulated

SUITE = support.ROOT / "tests/gpu"
WITHOUT = {k: v for k, v in os.environ.items() if k not in ("LD_LIBRARY_PATH", "COMFYUI")}
DOUBLE = _simulated.environment(
    13, LD_LIBRARY_PATH=f"{_simulated.LIBRARIES}:{_simulated.LIBRARIES}/13:{_simulated.LIBRARIES}/12")
DOUBLE.pop("COMFYUI", None)


def suite(*names, folder=SUITE, build=support.BUILD, status=0, env=WITHOUT, python=sys.executable):
    """The output of the suite, line by line."""
    return support.run(folder / "run", "--build", build, "--python", python, *names, status=status, env=env,
                       timeout=900).stdout.splitlines()


def outcomes(lines):
    return {said[2]: said[1] for line in lines if (said := re.match(r"(passed|failed|skipped) +(\w+)", line))}
