# needs: torch triton
"""Triton opens the driver itself. Its kernels work on memory that has left the device and come back."""
import _gpu, support
from _gpu import MIB


def work():
    torch = _gpu.torch_with_cuda()
    import memstow, triton
    from _triton_kernel import add_kernel
    model = memstow.owner("net")
    torch.empty(1, device="cuda")
    with model.scope():
        left = torch.arange(8 * MIB, device="cuda", dtype=torch.int32)
        right = torch.ones(8 * MIB, device="cuda", dtype=torch.int32)
    _gpu.keep(left, right)
    for round in range(3):
        add_kernel[(triton.cdiv(8 * MIB, 1024),)](left, right, 8 * MIB, BLOCK=1024)
        torch.cuda.synchronize()
        model.set_idle(True)
        moved = model.stow()
        assert moved >= 64 * MIB and model.restore() == moved
        model.set_idle(False)
        assert int(left[0]) == round + 1 and int(left[-1]) == 8 * MIB + round
    print("moved:", moved)


def outside():
    for backend in ("cudaMallocAsync", "native"):
        print(_gpu.under_memstow(__file__, "work", MEMSTOW_CUDA_MOVES="2M", PYTORCH_ALLOC_CONF=f"backend:{backend}",
                                 PYTORCH_CUDA_ALLOC_CONF=f"backend:{backend}",
                                 TRITON_CACHE_DIR=str(support.HERE / "triton")).stdout, end="")
    assert support.report()["totals"]["cuda"]["live_bytes"] >= 64 * MIB


if __name__ == "__main__":
    _gpu.main(__file__, outside, work=work)
