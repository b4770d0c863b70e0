"""A program's first CUDA call is cudaDeviceReset. When the hook of this call looks for the driver's functions, the
driver is not loaded yet. memstow must look again later, when the runtime has loaded the driver: memory that the program
allocates later belongs to the device that the program chose, and the report has the driver's figures. The driver is the
simulated one, a test double."""
import support, _simulated

PROGRAM = """
import ctypes
runtime, at = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p()
assert "libcuda.so.1" not in open("/proc/self/maps").read(), "the driver is there too early for this test"
assert runtime.cudaDeviceReset() == 0 and runtime.cudaSetDevice(1) == 0
assert runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(5 << 20)) == 0
available, total = ctypes.c_size_t(), ctypes.c_size_t()
assert runtime.cudaMemGetInfo(ctypes.byref(available), ctypes.byref(total)) == 0
"""
support.track(support.PYTHON, "-c", PROGRAM, env=_simulated.environment(12, SIMCUDA_DEVICES="2"), file="x.mst")
devices = {device["device"]: device for device in support.report("x.mst")["cuda"]["devices"]}
assert devices[1]["live_bytes"] == 5 << 20, devices
assert devices[1]["name"] and devices[1]["uuid"] and devices[1]["driver_used_bytes"] >= 5 << 20, devices[1]
assert 0 not in devices or not devices[0]["live_bytes"], devices
