#!/usr/bin/env python3
# needs: torch
# PyTorch's own code reads the output of memstow_viz for a program that allocates with cudaMallocAsync: segments,
# owners, stacks and sums.
import pickle, sys

import support, _simulated

sys.path.insert(0, str(support.ROOT / "tools/python"))
PROGRAM = """
#include "abi.h"
#include "cuda_abi.h"
int cuInit(unsigned); int cuDevicePrimaryCtxRetain(CUcontext *, int); int cuCtxSetCurrent(CUcontext);
int cuMemAllocAsync(CUdeviceptr *, size_t, CUstream); int cuMemAlloc_v2(CUdeviceptr *, size_t);
int main(void) {
    CUcontext context;
    CUdeviceptr at, segment;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context)) return 1;
    abi_find();
    uint32_t unet = (uint32_t)CALL(0, memstow_owner_open, MEMSTOW_MODEL, "unet", "a.st", 0, 1);
    uint32_t other = (uint32_t)CALL(0, memstow_owner_open, MEMSTOW_MODEL, "unet", "b.st", 0, 2);
    CALL(0, memstow_scope_enter, unet);
    if (cuMemAllocAsync(&at, 8 << 20, NULL)) return 1;
    CALL(0, memstow_scope_leave, unet);
    if (cuMemAlloc_v2(&segment, 20 << 20)) return 1;
    CALL(0, memstow_assign, unet, (void *)(segment + (2 << 20)), 4 << 20);
    CALL(0, memstow_assign, other, (void *)(segment + (6 << 20)), 1 << 20);
    return 0;
}
"""
(support.HERE / "viz.c").write_text(PROGRAM)
program = _simulated.program(support.HERE / "viz.c", _simulated.LIBRARIES / "libcuda.so.1", name="viz")
support.track(program, env=_simulated.environment())
support.run(sys.executable, support.ROOT / "tools/python/memstow_viz.py", "out.mst", "out.pickle")
support.run(sys.executable, support.ROOT / "tools/python/memstow_viz.py", status=2)
support.run(sys.executable, support.ROOT / "tools/python/memstow_viz.py", "no such file", "x", status=3)

with open("out.pickle", "rb") as file:
    snapshot = pickle.load(file)
segments = sorted(snapshot["segments"], key=lambda s: s["total_size"])
assert [s["total_size"] for s in segments] == [8 << 20, 20 << 20]
owners = [[f["name"] for f in b["frames"] if f["name"].startswith("model: ")] for b in segments[1]["blocks"]]
assert owners == [[], ["model: unet (a.st)"], ["model: unet (b.st)"], []], owners
assert [b["size"] >> 20 for b in segments[1]["blocks"]] == [2, 4, 1, 13]
assert segments[0]["blocks"][0]["frames"][0]["name"] == "main"
assert segments[0]["blocks"][0]["frames"][-1]["name"] == "model: unet (a.st)"

import types

import torch
import torch.cuda._memory_viz as viz

import memstow

# This PyTorch has no CUDA, so a double takes the place of a tensor on a device.
storage = types.SimpleNamespace(data_ptr=lambda: 1 << 40, nbytes=lambda: 4096)
tensor = types.SimpleNamespace(layout=torch.strided, untyped_storage=lambda: storage)
for device, wanted in (("cuda", [(1 << 40, 4096)]), ("cpu", [(1 << 40, 4096)]), ("meta", []), ("xpu", [])):
    tensor.device = types.SimpleNamespace(type=device)
    assert list(memstow._tensor_ranges(tensor)) == wanted, device

text = viz.segsum(snapshot)
assert "segments: 2" in text and "total_allocated: 28.0MiB" in text, text
assert "TOTAL MEM" in viz.trace(snapshot)
lines = []
viz.segments(snapshot, format_flamegraph=lambda text: lines.append(text))
assert "model: unet" in lines[0] and "main" in lines[0], lines
for page in (viz.trace_plot(snapshot), viz.segment_plot(snapshot)):
    assert page.startswith("<!DOCTYPE html>") or "<html" in page or "<script" in page
