"""What there is to run on, and whether it still works: the device, its driver, the versions of libraries, errors in the
kernel's log. Each question is asked by a process of its own, with a limit of time."""
import pathlib, re, shutil

import _child

BEGIN = """
import ctypes
cuda, count, version = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.c_int()
"""

LOOK = BEGIN + """
name = ctypes.create_string_buffer(200)
if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value:
    cuda.cuDriverGetVersion(ctypes.byref(version)), cuda.cuDeviceGetName(name, 200, 0)
    print(count.value, version.value, name.value.decode(errors="replace"))
"""

# A process without memstow allocates, writes, reads and frees device memory.
PROBE = BEGIN + """
def must(result, what):
    if result:
        raise SystemExit(f"{what}: error {result}")
context, at, size = ctypes.c_void_p(), ctypes.c_uint64(), 4 << 20
data = ctypes.create_string_buffer(b"\\x5a" * size, size)
must(cuda.cuInit(0), "cuInit")
must(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0), "cuDevicePrimaryCtxRetain")
must(cuda.cuCtxSetCurrent(context), "cuCtxSetCurrent")
must(cuda.cuMemAlloc_v2(ctypes.byref(at), ctypes.c_size_t(size)), "cuMemAlloc")
must(cuda.cuMemcpyHtoD_v2(at, data, ctypes.c_size_t(size)), "cuMemcpyHtoD")
back = ctypes.create_string_buffer(size)
must(cuda.cuMemcpyDtoH_v2(back, at, ctypes.c_size_t(size)), "cuMemcpyDtoH")
must(cuda.cuMemFree_v2(at), "cuMemFree")
if back.raw != data.raw:
    raise SystemExit("other bytes came back than went there")
print("well")
"""

# The versions are read without an import of the packages, because an import may take a minute, or hang.
VERSIONS = """
import importlib.metadata, platform
print("Python", platform.python_version() + ", glibc", platform.libc_ver()[1], end="")
for name in ("torch", "triton", "cupy-cuda12x", "cupy-cuda13x", "jax", "comfy-aimdo"):
    try:
        print(f", {name} {importlib.metadata.version(name)}", end="")
    except Exception:
        pass
"""
SLOW = 30  # seconds that a Python process may take, also one that uses the device
QUICK = 10 # seconds that dmesg or nvidia-smi may take
XID = re.compile(r"NVRM: Xid.*")


def find(python, folder, seconds=60):
    """Returns how many devices there are, the driver's version of CUDA, and the name of the first device. Returns None
    if there is no device. Raises TimeoutError if the driver does not answer."""
    said = pathlib.Path(folder) / "devices"
    ended = _child.execute(_child.python(LOOK, program=python), seconds, said)
    if ended.status is None:
        raise TimeoutError(f"the driver has not said within {seconds} s which devices there are\n{ended.waited_for}")
    count, version, name = (ended.said.split("\n")[-1].split(" ", 2) + ["", "", ""])[:3]
    return (int(count), int(version), name) if count.isdecimal() else None


def driver_version():
    try:
        found = re.search(r"\d+\.\d+(\.\d+)?", pathlib.Path("/proc/driver/nvidia/version").read_text())
        return found[0] if found else "unknown"
    except OSError:
        return "unknown"


def versions(python, folder):
    return _child.ask(_child.python(VERSIONS, program=python), SLOW, folder) or "the versions are not known"


def fault(python, folder):
    """Returns what is wrong with the device, or an empty text if a process can use it."""
    ended = _child.execute(_child.python(PROBE, program=python), SLOW, pathlib.Path(folder) / "probe")
    if ended.status is None:
        return f"a process that used the device did not end within {SLOW} s\n{ended.waited_for}"
    return "" if ended.status == 0 and ended.said.endswith("well") else ended.said.split("\n")[-1] or "no answer"


def kernel_log(folder):
    """Returns the driver's errors in the kernel's log, or None if the log cannot be read. Not every user may do so."""
    said = _child.ask(["dmesg"], QUICK, folder) if shutil.which("dmesg") else None
    return None if said is None else XID.findall(said)


def nvidia_smi(folder):
    if not shutil.which("nvidia-smi"):
        return "there is no nvidia-smi"
    return _child.ask(["nvidia-smi"], QUICK, folder) or f"nvidia-smi failed, or took more than {QUICK} s"
