# needs: cupy
"""CuPy has CUDA's runtime linked into it. The ledger has CuPy's memory with Python's call stacks, and this memory can
move."""
import _gpu, support
from _gpu import MIB


def work():
    import cupy, memstow
    model = memstow.owner("net")
    with model.scope():
        weights = cupy.arange(16 * MIB, dtype=cupy.float32)
    _gpu.keep(weights)
    total = float(weights.sum())
    cupy.cuda.Device().synchronize()
    model.set_idle(True)
    moved = model.stow()
    assert moved >= 64 * MIB, moved
    assert model.restore() == moved and float(weights.sum()) == total
    print("moved:", moved)


def outside():
    print(_gpu.under_memstow(__file__, "work", MEMSTOW_CUDA_MOVES="2M").stdout, end="")
    report = support.report()
    assert report["totals"]["cuda"]["live_bytes"] >= 64 * MIB
    assert any(f["function"] == "work" for site in report["cuda"]["sites"] for f in site["stack"])


if __name__ == "__main__":
    _gpu.main(__file__, outside, work=work)
