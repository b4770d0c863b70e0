#!/usr/bin/env python3
# needs: cc cuda-headers pip:nvidia-cuda-runtime>=13,<14 pip:nvidia-cuda-runtime-cu12 pip:comfy-aimdo==0.6.0
# needs: pip:nvidia-cuda-cupti>=13,<14 pip:nvidia-cuda-cupti-cu12
"""The real CUDA runtimes, CUPTI and comfy-aimdo ask the driver for functions. Each function that they ask for, by name,
version and flags, has a line in memstow's table, or needs none. These libraries run over the simulated driver, a test
double. The simulated driver does not imitate the driver's private tables (cuGetExportTable), so the runtime and CUPTI
stop where they ask for these tables."""
import sys

import support, _cupti, _entries, _requests

# cudaMalloc returns 500 here, because the simulated driver lacks the private tables that the runtime asks for.
RUNTIME = """
import ctypes, sys
library, number, at = ctypes.CDLL(sys.argv[1]), ctypes.c_int(), ctypes.c_void_p()
print(library.cudaRuntimeGetVersion(ctypes.byref(number)), number.value // 1000)
print(library.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(1024)))
"""
CUPTI = """
import ctypes, sys
library, handle = ctypes.CDLL(sys.argv[1]), ctypes.c_void_p()
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *of: None)
print(library.cuptiSubscribe(ctypes.byref(handle), callback, None) != 0)
"""
AIMDO = """
import ctypes
cuda, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
import comfy_aimdo.control as control
assert control.init() and control.init_device(0)
from comfy_aimdo import model_vbar
vbar = model_vbar.ModelVBAR(256 << 20, 0)
assert vbar.fault(vbar.alloc(32 << 20)[1], 32 << 20) is not None
"""
# A runtime asks for these functions, in these versions and with these flags. The flag 2 means that each thread has its
# own default stream.
ASKED = {("cuMemAlloc", 3020, 0), ("cuMemFree", 3020, 0), ("cuMemAllocAsync", 11020, 0), ("cuMemFreeAsync", 11020, 0),
         ("cuMemAllocAsync", 11020, 2), ("cuMemAllocManaged", 6000, 0)}

if "13.5" not in _entries.headers():
    support.skip("no headers of CUDA 13.5 are installed")
runtimes = [file for folder in _cupti.folders() for file in sorted(folder.glob("**/libcudart.so.1[23]"))]
if not runtimes:
    support.skip("no CUDA runtime is installed")
for library in runtimes:
    generation = library.name.rsplit(".", 1)[1]
    asked = _requests.record(f"cudart{generation}", sys.executable, "-c", RUNTIME, library, files="libcudart")
    assert asked.output == f"0 {generation}\n500\n", asked.output
    assert len(asked.resolver) > 400 and "cuGetProcAddress_v2" in asked.symbols, asked.symbols
    missing = ASKED - _requests.check(asked)
    assert not missing, missing

for library in [file for folder in _cupti.folders() for file in sorted(folder.glob("**/libcupti.so.1[23]"))]:
    asked = _requests.record(f"cupti{library.name.rsplit('.', 1)[1]}", sys.executable, "-c", CUPTI, library,
                             files="libcupti")
    assert asked.output == "True\n", asked.output
    _requests.check(asked)

asked = _requests.record("aimdo", sys.executable, "-c", AIMDO, files="aimdo")
assert asked.symbols == {"cuGetProcAddress"} and len(asked.resolver) > 20, (asked.symbols, asked.resolver)
assert {"cuMemCreate", "cuMemMap", "cuMemUnmap", "cuMemAlloc"} <= {name for name, *_ in _requests.check(asked)}
