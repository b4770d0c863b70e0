#!/usr/bin/env python3
# needs: pip:comfy-aimdo
# PyPI's comfy-aimdo, a client by other authors, over the simulated driver. It writes its jumps over the driver's
# functions, as it does without memstow, and the program's memory is counted nevertheless.
import json, sys

import support, _simulated

CLIENT = """
import ctypes
cuda, context, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
import comfy_aimdo.control as control
print(control.init(), control.init_device(0))
from comfy_aimdo import model_vbar # it takes the library as it is now
vbar = model_vbar.ModelVBAR(256 << 20, 0)
print(vbar.get_residency())
def allocate(size):
    print(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)), bool(at.value))
allocate(3 << 20)
print(cuda.cuMemFree_v2(at))
allocate(5 << 20)
print(cuda.cuMemAllocAsync(ctypes.byref(at), ctypes.c_size_t(7 << 20), None), control.get_total_vram_usage())
"""
environment = _simulated.environment()
alone = support.run(sys.executable, "-c", CLIENT, env=environment).stdout
assert alone.startswith("True True\n"), alone
tracked = support.track(sys.executable, "-c", CLIENT, env=environment).stdout
assert tracked == alone, f"alone:\n{alone}\nunder memstow:\n{tracked}"
cuda = support.report()["cuda"]
assert cuda["kinds"]["device"]["live_bytes"] == 5 << 20, cuda["kinds"]
assert cuda["kinds"]["pool"]["live_bytes"] == 7 << 20, cuda["kinds"]
assert cuda["foreign_frees"] == cuda["missed_frees"] == cuda["unknown_entries"] == 0
print(alone)

# Once comfy-aimdo is loaded, memstow serves no more memory: models get the driver's memory, which cannot move. It makes
# no difference whether memstow or comfy-aimdo began first. Memory that memstow has served earlier can still move.
MOVES = """
import ctypes, sys
cuda, context, at = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
memstow = ctypes.CDLL(None)
memstow.memstow_owner_open.restype = memstow.memstow_stow.restype = memstow.memstow_restore.restype = ctypes.c_int64
model = memstow.memstow_owner_open(1, b"unet", b"", ctypes.c_uint64(1), ctypes.c_uint64(0))
memstow.memstow_owner_idle(model, 1)
def aimdo():
    import comfy_aimdo.control as control
    assert control.init() and control.init_device(0)
def allocate():
    assert not memstow.memstow_scope_enter(model) and not cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(8 << 20))
    assert not memstow.memstow_scope_leave(model)
if sys.argv[1] == "first":
    aimdo()
allocate()
if sys.argv[1] == "later":
    moved = memstow.memstow_stow(model)
    aimdo()
    allocate()
    print(moved, memstow.memstow_restore(model))
print(memstow.memstow_stow(model))
"""
LOADED = "comfy-aimdo is loaded, which manages device memory itself"
for order, said, stayed in (("first", "0\n", [8 << 20]), ("later", f"{8 << 20} {8 << 20}\n-95\n", [8 << 20, 8 << 20])):
    done = support.track(sys.executable, "-c", MOVES, order, env={**environment, "MEMSTOW_CUDA_MOVES": "2M"},
                         file=f"{order}.mst")
    assert done.stdout == said, (order, done.stdout)
    lines = json.loads(support.memstow("decisions", f"{order}.mst", "--json").stdout)["lines"]
    refused = [line["bytes"] for line in lines if line.get("because") == LOADED]
    assert refused == stayed, (order, refused)
