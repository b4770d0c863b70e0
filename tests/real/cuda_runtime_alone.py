#!/usr/bin/env python3
# On a machine without a driver, PyPI's CUDA runtimes give the same answers with memstow as without memstow.
# needs: pip:nvidia-cuda-runtime>=13,<14 pip:nvidia-cuda-runtime-cu12
import importlib.util, pathlib, sys

import support

CLIENT = """
import ctypes, sys
library, everybody = ctypes.CDLL(sys.argv[1]), ctypes.CDLL(None)
at, version = ctypes.c_void_p(), ctypes.c_int()
def answers(name, *arguments):
    print(name, getattr(library, name)(*arguments), bool(at.value))
answers("cudaRuntimeGetVersion", ctypes.byref(version))
print(version.value)
answers("cudaMalloc", ctypes.byref(at), ctypes.c_size_t(1024))
answers("cudaMallocAsync", ctypes.byref(at), ctypes.c_size_t(1024), None)
answers("cudaHostAlloc", ctypes.byref(at), ctypes.c_size_t(1024), 0)
answers("cudaFree", None)
answers("cudaFreeAsync", None, None)
answers("cudaDeviceReset")
answers("cudaGetDriverEntryPointByVersion", b"cuMemAlloc", ctypes.byref(at), 12000, ctypes.c_ulonglong(0), None)
for name in ("cudaMalloc", "cuMemAlloc_v2", "cuGetProcAddress_v2"):
    print(name, hasattr(everybody, name))
"""


def runtimes():
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations if spec else []:
        yield from sorted(pathlib.Path(folder).glob("**/libcudart.so.1[23]"))


found = list(runtimes())
if not found:
    support.skip("no CUDA runtime is installed")
for library in found:
    alone = support.run(sys.executable, "-c", CLIENT, library).stdout
    if "cudaMalloc 0 " in alone:
        support.skip("there is a CUDA driver here: tests/gpu has the rest")
    tracked = support.track(sys.executable, "-c", CLIENT, library).stdout
    assert tracked == alone, f"{library.name}\nalone:\n{alone}\nunder memstow:\n{tracked}"
    assert support.report()["totals"]["cuda"]["allocated_blocks"] == 0
    print(library.name, "answers as without memstow")
