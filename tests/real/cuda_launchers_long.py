#!/usr/bin/env python3
# long
# timeout: 600
# needs: cc cuda-headers launchers pip:numpy
"""Triton and CuPy over the simulated driver, a test double. Triton compiles a kernel for an H100. It launches the
kernel, and launches it again after the kernel's memory has left the device and come back. The simulated driver does not
execute the kernel, but a function of its own that has the same name. CuPy contains the CUDA runtime. The runtime stops
where it asks for the driver's private tables, because the simulated driver has none. Each function that Triton and CuPy
ask for has a line in memstow's table, or needs none."""
import os, re, sys

import support, _entries, _requests

LAUNCHES = """
import ctypes, sys
import triton, triton.language as tl, triton.runtime
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia import driver

@triton.jit
def sim_fill(to, words, value):
    tl.store(to + tl.program_id(0), value.to(tl.int32))

cuda, everybody = ctypes.CDLL("libcuda.so.1"), ctypes.CDLL(None)
context, at, MIB = ctypes.c_void_p(), ctypes.c_uint64(), 1 << 20
def must(result, wanted=0):
    assert result == wanted, result
must(cuda.cuInit(0)), must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)), must(cuda.cuCtxSetCurrent(context))

class Pointer:
    def data_ptr(self):
        return at.value

class Active:
    utils = driver.CudaUtils()
triton.runtime.driver._active = Active
source = triton.compiler.ASTSource(fn=sim_fill, signature={"to": "*i32", "words": "i64", "value": "i64"})
kernel = triton.compile(source, target=GPUTarget("cuda", 90, 32))
module, function, *_ = Active.utils.load_binary("sim_fill", kernel.asm["cubin"], 0, 0)
launcher = driver.CudaLauncher(kernel.src, kernel.metadata)

def launch(value):
    launcher(1, 1, 1, 0, function, kernel.packed_metadata, None, None, None, Pointer(), 2 * MIB, value)
    must(cuda.cuCtxSynchronize())
    back = (ctypes.c_uint32 * (2 * MIB))()
    must(cuda.cuMemcpyDtoH_v2(back, at, ctypes.c_size_t(8 * MIB)))
    print(back[0], back[2 * MIB - 1])

tracked = hasattr(everybody, "memstow_owner_open")
if tracked:
    for name in ("memstow_owner_open", "memstow_stow", "memstow_restore"):
        getattr(everybody, name).restype = ctypes.c_int64
    model = everybody.memstow_owner_open(1, b"net", b"", ctypes.c_uint64(1), ctypes.c_uint64(0))
    must(everybody.memstow_scope_enter(model))
must(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(8 * MIB)))
if tracked:
    must(everybody.memstow_scope_leave(model))
launch(7)
if tracked:
    must(everybody.memstow_owner_idle(model, 1))
    must(everybody.memstow_stow(model), 8 * MIB), must(everybody.memstow_restore(model), 8 * MIB)
launch(8)
"""
CUPY = """
import cupy
print(cupy.cuda.runtime.runtimeGetVersion() // 1000)
try:
    cupy.zeros(1024)
except cupy.cuda.runtime.CUDARuntimeError as error:
    print(error)
"""
launchers = support.ROOT / "build/launchers"
if "13.5" not in _entries.headers() or not (launchers / "triton/triton").exists() or not (
        launchers / "cupy-cuda12x/cupy").exists():
    support.skip("Triton, CuPy or headers of CUDA 13.5 are not installed (build/launchers.log)")

(support.HERE / "launches.py").write_text(LAUNCHES) # Triton reads the kernel's source
cache = support.HERE / "triton"
settings = {"PYTHONPATH": f"{launchers / 'triton'}:{os.environ['PYTHONPATH']}", "TRITON_CACHE_DIR": str(cache),
            "TRITON_LIBCUDA_PATH": str(support.BUILD / "tests/simcuda/lib")}
asked = _requests.record("triton", sys.executable, "launches.py", files="cuda_utils", **settings)
assert asked.output == "7 7\n8 8\n", asked.output
linked = set(re.findall(r" U (cu\w+)", support.run("nm", "-D", "-u", next(cache.glob("*/cuda_utils*.so"))).stdout))
assert {"cuPointerGetAttribute", "cuModuleLoadData"} <= linked and "cuLaunchKernelEx" in asked.symbols, asked.symbols
asked.symbols |= linked
_requests.check(asked)
done = support.track(sys.executable, "launches.py", env=_requests.environment(MEMSTOW_CUDA_MOVES="2M", **settings))
assert done.stdout == asked.output, done.stdout + done.stderr
cuda = support.report()["cuda"]
assert cuda["kinds"]["device"]["live_bytes"] == 8 << 20 and not cuda["unknown_entries"], cuda["kinds"]

settings = {"PYTHONPATH": f"{launchers / 'cupy-cuda12x'}:{launchers / 'fastrlock'}:{os.environ['PYTHONPATH']}"}
asked = _requests.record("cupy", sys.executable, "-c", CUPY, files="runtime", **settings)
assert asked.output == "12\ncudaErrorSymbolNotFound: named symbol not found\n", asked.output
answered = _requests.check(asked)
assert ("cuMemAlloc", 3020, 0) in answered and len(asked.resolver) > 400, answered
done = support.track(sys.executable, "-c", CUPY, env=_requests.environment(**settings))
assert done.stdout == asked.output, done.stdout
