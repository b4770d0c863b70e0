"""The part `moves` once more, where the host's memory may stay pinned (MEMSTOW_CUDA_PINNED). memstow's own thread pins
this memory ahead of need, beside the program's work, and the device copies straight into it."""
import os

import _gpu, support
from _gpu import MIB

MODEL = 130 * MIB # of moves.c


def outside():
    wish = {"MEMSTOW_CUDA_MOVES": "2M", "MEMSTOW_CUDA_VERIFY": "1", "MEMSTOW_CUDA_PINNED": "512M"}
    done = _gpu.kept("moves", support.track, support.BUILD / "tests/gpu/moves", env={**os.environ, **wish})
    assert done.returncode == 0 and done.stdout.rstrip().endswith("ok"), done.stdout + done.stderr
    stayed = support.report()["residency"]["device_buffer_bytes"]
    assert stayed >= MODEL, f"{stayed} bytes stayed pinned"
    print(f"{stayed} bytes stayed pinned")


if __name__ == "__main__":
    _gpu.main(__file__, outside)
