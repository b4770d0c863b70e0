# needs: torch
"""A workspace of a library is made in one model's scope, but serves all models. So it stays when that model leaves the
device. This is the last part of the suite, because a workspace that moved would break the context (error 700)."""
import _gpu
import _torch


def work(backend):
    torch = _gpu.torch_with_cuda()
    import memstow
    unet, clip, net, text, given = _torch.models(torch, memstow)
    with torch.no_grad():
        text_before = text(given)
    aside = torch.cuda.Stream()
    torch.cuda.synchronize()
    with unet.scope(), torch.cuda.stream(aside), torch.no_grad():
        net(given) # cuBLAS's first product on this stream: its workspace is allocated here
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    unet.set_idle(True)
    moved = unet.stow()
    assert moved >= _torch.LAYERS * _torch.WIDTH * _torch.WIDTH * 4, moved
    with torch.no_grad(), torch.cuda.stream(aside):
        now = text(given)
    torch.cuda.synchronize()
    assert torch.allclose(now, text_before, rtol=1e-4, atol=1e-4)
    assert unet.restore() == moved
    print(f"{backend}: {moved} bytes left the device, and the workspace stayed")
    _gpu.keep(clip, net, text)


def outside():
    for backend in ("native", "cudaMallocAsync"):
        print(_gpu.under_memstow(__file__, "work", backend, MEMSTOW_CUDA_MOVES="2M",
                                 PYTORCH_ALLOC_CONF=f"backend:{backend}",
                                 PYTORCH_CUDA_ALLOC_CONF=f"backend:{backend}").stdout, end="")


if __name__ == "__main__":
    _gpu.main(__file__, outside, work=work)
