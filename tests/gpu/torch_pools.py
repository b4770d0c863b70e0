# needs: torch
"""Each model has a PyTorch pool of its own. This is tested with the real PyTorch. In nested scopes and two threads,
each segment belongs to one model. drop_pools() gives cached memory back. A graph that is captured in a scope has its
own memory."""
import threading

import _gpu, support
from _gpu import MIB


def take(torch, mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def work():
    torch = _gpu.torch_with_cuda()
    import memstow, memstow_pools
    torch.empty(1, device="cuda")
    if memstow_pools.possible(torch) is not True:
        support.skip(f"PyTorch {torch.__version__} has no pools that memstow uses")
    unet, clip = memstow.owner("unet"), memstow.owner("clip")
    kept = []
    _gpu.keep(kept)
    with unet.scope():
        kept.append(take(torch, 4))
        with clip.scope():
            kept.append(take(torch, 4))
            with unet.scope():
                kept.append(take(torch, 4))
        kept.append(take(torch, 4))
    kept.append(take(torch, 4))

    def beside():
        with unet.scope():
            kept.append(take(torch, 3))
    with unet.scope():
        thread = threading.Thread(target=beside)
        thread.start()
        kept.append(take(torch, 3))
        thread.join()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            take(torch, 32).fill_(1)
    pools = {s["segment_pool_id"] for s in torch.cuda.memory_snapshot() if s["allocated_size"]}
    assert len(pools) >= 3, pools
    reserved = torch.cuda.memory_reserved()
    with unet.scope():
        cached = take(torch, 200)
    del cached
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() >= reserved + 200 * MIB
    with unet.scope():
        memstow.drop_pools()
        with memstow.outside_pools():
            torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= reserved, (torch.cuda.memory_reserved(), reserved)
    for tensor in kept: # released tensors: their memory is still cached
        assert int(tensor.fill_(3).sum(dtype=torch.int64)) == 3 * tensor.numel()
    graph.replay()
    torch.cuda.synchronize()
    with unet.scope():
        kept.append(take(torch, 4))
    unet.retire()
    print("pools:", len(pools))


def outside():
    print(_gpu.under_memstow(__file__, "work", MEMSTOW_CUDA_POOLS="1", PYTORCH_ALLOC_CONF="backend:native",
                             PYTORCH_CUDA_ALLOC_CONF="backend:native").stdout, end="")
    report = support.report()
    assert not report["cuda"]["mixed_blocks"], report["cuda"]["mixed_blocks"]
    has = {o["name"]: o["cuda_bytes"] for o in report["owners"]}
    assert has["unet"] >= 18 * MIB and has["clip"] >= 4 * MIB, has


if __name__ == "__main__":
    _gpu.main(__file__, outside, work=work)
