# needs: jax
"""JAX opens the driver itself, and looks up each function. JAX's memory is in the ledger."""
import _gpu, support
from _gpu import MIB


def work():
    import jax, memstow
    if not any(device.platform in ("gpu", "cuda") for device in jax.devices()):
        support.skip("JAX has no CUDA here")
    model = memstow.owner("net")
    with model.scope():
        weights = jax.numpy.arange(16 * MIB, dtype="float32").block_until_ready()
    assert float(weights[-1]) == 16 * MIB - 1
    memstow.snapshot("inside.mst") # JAX gives all memory back before the process ends
    print("cuda bytes:", sum(share.cuda_bytes for share in memstow.shares()))


def outside():
    print(_gpu.under_memstow(__file__, "work", XLA_PYTHON_CLIENT_PREALLOCATE="false").stdout, end="")
    report = support.report("inside.mst")
    assert report["totals"]["cuda"]["live_bytes"] >= 64 * MIB, report["totals"]["cuda"]


if __name__ == "__main__":
    _gpu.main(__file__, outside, work=work)
