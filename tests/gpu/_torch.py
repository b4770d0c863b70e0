"""Shared by the tests of both PyTorch backends: models that leave the device and come back, and PyTorch's own work
meanwhile."""
import json, pickle

import _gpu, support
from _gpu import MIB

WIDTH, LAYERS = 2048, 6 # 16 MiB each


def models(torch, memstow):
    """Returns the owners "unet" and "clip", a model for each of them, and an input. The model of "unet" is made in its
    owner's scope. Both models are assigned."""
    torch.manual_seed(5)
    unet, clip = memstow.owner("unet"), memstow.owner("clip")
    torch.empty(1, device="cuda") # begins CUDA
    with unet.scope():
        net = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))).cuda()
    text = torch.nn.Linear(WIDTH, WIDTH).cuda()
    memstow.assign(clip, text)
    memstow.assign(unet, net)
    return unet, clip, net, text, torch.randn(64, WIDTH, device="cuda")


def captured(torch, net, given):
    """The network as a graph, and the tensor of its result."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), torch.no_grad():
        for _ in range(3):
            net(given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), torch.no_grad():
        result = net(given)
    return graph, result


def convolve(torch):
    """Runs a convolution for which cuDNN tries its algorithms. To do this, PyTorch asks how much memory there is."""
    torch.backends.cudnn.benchmark = True
    layer = torch.nn.Conv2d(16, 32, 3, padding=1).cuda()
    out = layer(torch.ones(8, 16, 64, 64, device="cuda", requires_grad=True))
    out.sum().backward()
    torch.cuda.synchronize()
    assert torch.isfinite(out).all()


def statistics(torch):
    free, total = torch.cuda.mem_get_info()
    stats = torch.cuda.memory_stats()
    assert 0 <= free <= total, (free, total)
    assert stats["reserved_bytes.all.current"] >= stats["allocated_bytes.all.current"] > 0, stats
    assert torch.cuda.memory_reserved() + free <= total, "PyTorch insists on that"
    return free, stats["allocated_bytes.all.current"]


def work(backend):
    torch = _gpu.torch_with_cuda()
    import memstow
    assert torch.cuda.get_allocator_backend() == backend, torch.cuda.get_allocator_backend()
    unet, clip, net, text, given = models(torch, memstow)
    _gpu.keep(net, text)
    weights = sum(p.numel() * p.element_size() for p in net.parameters())
    with torch.no_grad():
        before, text_before = net(given), text(given)
    graph, result = captured(torch, net, given)
    known = _gpu.digest(*net.parameters(), before)
    assert unet.figures().cuda_bytes >= weights, (unet.figures(), weights)
    print("movable:", json.dumps(unet.figures().movable_bytes))
    for _round in range(3):
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        free, allocated = statistics(torch)
        unet.set_idle(True)
        moved = unet.stow()
        assert moved >= LAYERS * WIDTH * WIDTH * 4, f"{moved} bytes left the device, of {weights}"
        free_now, allocated_now = statistics(torch)
        assert free_now >= free + moved - 64 * MIB and allocated_now == allocated, (free, free_now, moved)
        torch.cuda.empty_cache()
        convolve(torch)
        with torch.no_grad():
            assert torch.equal(text(given), text_before) # another model works meanwhile
        statistics(torch)
        assert unet.restore() == moved
        unet.set_idle(False)
        with torch.no_grad():
            assert _gpu.digest(*net.parameters(), net(given)) == known, "not the same bits after it came back"
        result.zero_()
        graph.replay()
        torch.cuda.synchronize()
        assert torch.allclose(result, before, rtol=1e-4, atol=1e-4), "a graph that was captured before"
    try:
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
        raise AssertionError("32 TiB")
    except torch.cuda.OutOfMemoryError:
        pass
    print("moved:", moved)


def check_report(backend):
    """Checks the ledger at the end, and what PyTorch's viewer shows of it."""
    report = support.report()
    has = {o["name"]: o["cuda_bytes"] for o in report["owners"]}
    assert has["unet"] >= LAYERS * WIDTH * WIDTH * 4 and has["clip"] >= WIDTH * WIDTH * 4, has
    refused = report["cuda"]["refused"]
    assert refused["requests"] >= 1 and report["cuda"]["foreign_frees"] == 0, refused
    functions = {f["function"] for site in report["cuda"]["sites"] for f in site["stack"]}
    assert "models" in functions, "call stacks lead to the Python function that allocates"
    lines = json.loads(support.memstow("decisions", "out.mst", "--json").stdout)["lines"]
    assert not [line for line in lines if line["kind"] == "REFUSED"
                and line["because"].startswith("the owner is not")], lines
    support.run(support.PYTHON, support.ROOT / "tools/python/memstow_viz.py", "out.mst", "out.pickle")
    with open("out.pickle", "rb") as file:
        assert sum(s["total_size"] for s in pickle.load(file)["segments"]) >= has["unet"]


def part(file, backend):
    def outside():
        environment = {"MEMSTOW_CUDA_MOVES": "2M", "PYTORCH_ALLOC_CONF": f"backend:{backend}",
                       "PYTORCH_CUDA_ALLOC_CONF": f"backend:{backend}"}
        print(_gpu.under_memstow(file, "work", **environment).stdout, end="")
        check_report(backend)
    _gpu.main(file, outside, work=lambda: work(backend))
