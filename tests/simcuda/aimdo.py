# needs: pip:comfy-aimdo==0.6.0
# comfy-aimdo, a client by other authors, over the simulated driver. Its pages of 32 MiB come and go at one address. It
# patches the driver's exported functions, and makes room when the program allocates.
import ctypes
import os
import sys

from _simcuda import BUILD, environment

if str(BUILD) not in os.environ.get("LD_LIBRARY_PATH", ""): # the loader reads it when a process begins
    os.execve(sys.executable, [sys.executable, *sys.argv], environment(SIMCUDA_CAPACITY="1G"))

import comfy_aimdo.control as control

MIB = 1 << 20
cuda = ctypes.CDLL("libcuda.so.1", mode=ctypes.RTLD_GLOBAL)
cuda.sim_count_ok.restype = ctypes.c_uint64


def must(result, what):
    assert result == 0, f"{what}: {result}"


def calls(*names):
    return [cuda.sim_count_ok(name.encode()) for name in names]


context = ctypes.c_void_p()
must(cuda.cuInit(0), "cuInit")
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
assert control.init("cuda") and control.init_device(0), "aimdo does not begin"

from comfy_aimdo.model_vbar import ModelVBAR # it uses the library that init has loaded

model = ModelVBAR(256 * MIB, 0)
model.prioritize()
_, address, size = model.alloc(96 * MIB)
assert model.get_residency() == [0] * 8

# comfy-aimdo maps three pages: each is a handle.
assert model.fault(address, size) is not None
assert model.get_residency() == [3, 3, 3] + [0] * 5
assert calls("cuMemCreate", "cuMemMap", "cuMemUnmap") == [3, 3, 0]
data, back = os.urandom(size), ctypes.create_string_buffer(size)
must(cuda.cuMemcpyHtoD_v2(ctypes.c_uint64(address), data, ctypes.c_size_t(size)), "copy in")
must(cuda.cuMemcpyDtoH_v2(back, ctypes.c_uint64(address), ctypes.c_size_t(size)), "copy out")
assert back.raw[:size] == data
model.unpin(address, size)

# Two of them go.
assert model.free_memory(64 * MIB) == 64 * MIB
assert model.get_residency() == [1] + [0] * 7
assert calls("cuMemUnmap", "cuMemRelease") == [2, 2]
assert control.get_total_vram_usage() == 32 * MIB

# comfy-aimdo sees the program's allocation, because it has patched the exported function. It gives up the last page to
# make room.
at = ctypes.c_uint64()
must(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(900 * MIB)), "cuMemAlloc")
assert control.get_total_vram_usage() == 900 * MIB
assert model.get_residency() == [0] * 8
assert calls("cuMemCreate", "cuMemRelease") == [3, 3]
model.close()
control.deinit()
must(cuda.cuMemFree_v2(at), "cuMemFree")
