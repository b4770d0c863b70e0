# shows
# timeout: 120
"""What memstow takes for granted about a driver, as facts: versions, attributes, granularities, how entries are found,
and the first memory of each kind. The part fails only at a fact that would make memstow wrong. All other facts are
written down."""
import ctypes, os, re

import _gpu, support

ATTRIBUTES = {"pageable_memory_access": 88, "virtual_memory": 102, "rdma_of_virtual_memory": 110, "memory_pools": 115,
              "multicast": 132, "mps": 133}
TABLE = re.compile(r'^(?:ENTRY|RESOLVER)\(DRIVER, (\w+), "(\w+)", (\d+), ([01])', re.M)
LINES = support.ROOT / "preload/cuda/cuda_table.h"
FIRST, LEGACY, OWN_STREAM = 2000, 1, 2 # a version, and flags, of cuGetProcAddress


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class Properties(ctypes.Structure): # CUmemAllocationProp
    _fields_ = [("type", ctypes.c_int), ("handles", ctypes.c_int), ("location", Location),
                ("windows", ctypes.c_void_p), ("flags", ctypes.c_ubyte * 8)]


class Library(ctypes.Structure): # the beginning of struct dl_phdr_info
    _fields_ = [("address", ctypes.c_void_p), ("name", ctypes.c_char_p)]


def listed_libraries():
    """The libraries that dl_iterate_phdr lists. memstow uses this list to find out who calls."""
    names, kind = [], ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Library), ctypes.c_size_t, ctypes.c_void_p)

    def note(library, _size, _data):
        names.append(os.path.basename((library.contents.name or b"").decode(errors="replace")))
        return 0
    ctypes.CDLL(None).dl_iterate_phdr(kind(note), None)
    return names


def attributes(cuda):
    for name, number in ATTRIBUTES.items():
        value = ctypes.c_int(-1)
        error = cuda.cuDeviceGetAttribute(ctypes.byref(value), number, 0)
        print(f"attribute {name} ({number}): {f'error {error}' if error else value.value}")
        if not error:
            _gpu.figure(name, value.value)
    is_there = ctypes.c_int()
    assert not cuda.cuDeviceGetAttribute(ctypes.byref(is_there), ATTRIBUTES["virtual_memory"], 0) and is_there.value, \
        "the device has no virtual memory management: nothing can move"


def granularities(cuda):
    properties = Properties(type=1, location=Location(1, 0)) # pinned, on device 0
    for name, which in (("minimum", 0), ("recommended", 1)):
        size = ctypes.c_size_t()
        error = cuda.cuMemGetAllocationGranularity(ctypes.byref(size), ctypes.byref(properties), which)
        assert not error, f"cuMemGetAllocationGranularity: error {error}"
        print(f"granularity, {name}: {size.value}")
        _gpu.figure(f"granularity_{name}", size.value)
        assert (2 << 20) % size.value == 0, "memstow takes a granule of 2 MiB for granted"


def routes(cuda):
    """Looks up each line of the table with dlsym and with cuGetProcAddress. memstow is not in this process, so both
    find the driver's entries."""
    ask = cuda.cuGetProcAddress_v2
    both = alike = 0
    missing = []
    for name, base, since, own in TABLE.findall(LINES.read_text()):
        address, status = ctypes.c_void_p(), ctypes.c_int()
        error = ask(base.encode(), ctypes.byref(address), int(since) or FIRST,
                    ctypes.c_uint64(OWN_STREAM if own == "1" else LEGACY), ctypes.byref(status))
        try:
            symbol = ctypes.cast(getattr(cuda, name), ctypes.c_void_p).value
        except AttributeError:
            symbol = None
        if error or not address.value or not symbol:
            missing.append(f"{name}{'' if symbol else ': no symbol'}" +
                           ("" if address.value else f": the resolver has none (error {error}, status {status.value})"))
            continue
        both += 1
        alike += address.value == symbol
    print(f"entries: {both} by dlsym and cuGetProcAddress, {alike} at the same address")
    print(*(f"  not there: {line}" for line in missing), sep="\n")
    _gpu.figure("entries_found", both)
    _gpu.figure("entries_alike", alike)
    _gpu.figure("entries_missing", len(missing))
    assert both, "no entry of the table is there"


def look():
    cuda, version = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    assert not cuda.cuInit(0), "cuInit"
    cuda.cuDriverGetVersion(ctypes.byref(version))
    print(f"version {version.value}")
    is_listed = any(name.startswith("libcuda.so") for name in listed_libraries())
    print(f"dl_iterate_phdr tells of libcuda: {'yes' if is_listed else 'no'}")
    _gpu.figure("libcuda_listed", int(is_listed))
    assert is_listed, "libcuda.so is not told by dl_iterate_phdr: memstow does not know the driver's own calls"
    attributes(cuda)
    granularities(cuda)
    routes(cuda)


def first():
    """Calls cudaMalloc and cudaMallocAsync once each, and makes a cuBLAS handle, in a process under memstow."""
    size, at = 4 << 20, ctypes.c_void_p()
    for name in ("libcudart.so.13", "libcudart.so.12"):
        if _gpu.library_folders(name):
            break
    else:
        print("no libcudart is here")
        return
    runtime = ctypes.CDLL(name)
    error = runtime.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(size))
    assert not error, f"cudaMalloc of {name}: error {error}"
    error = runtime.cudaMallocAsync(ctypes.byref(at), ctypes.c_size_t(size), None)
    assert not error, f"cudaMallocAsync of {name}: error {error}"
    print(f"{name}: cudaMalloc, cudaMallocAsync")
    for blas in ("libcublas.so.13", "libcublas.so.12"):
        handle = ctypes.c_void_p()
        if not _gpu.library_folders(blas):
            continue
        status = ctypes.CDLL(blas).cublasCreate_v2(ctypes.byref(handle))
        assert not status, f"cublasCreate of {blas}: status {status}"
        print(f"{blas}: cublasCreate")
        break
    runtime.cudaDeviceSynchronize()


def outside():
    look()
    path, _missing = _gpu.search_path("libcudart.so.13", "libcudart.so.12", "libcublas.so.13", "libcublas.so.12",
                                      "libcublasLt.so.13", "libcublasLt.so.12")
    said = _gpu.under_memstow(__file__, "first", LD_LIBRARY_PATH=path).stdout
    print(said, end="")
    kinds = support.report()["cuda"]["kinds"]
    print(*(f"{name}: {kind['live_bytes']} bytes in {kind['live_blocks']} blocks" for name, kind in kinds.items()
            if kind["live_blocks"]), sep="\n")
    if "cudaMallocAsync" in said:
        assert kinds["device"]["live_bytes"] >= 4 << 20 and kinds["pool"]["live_bytes"] == 4 << 20, kinds


if __name__ == "__main__":
    _gpu.main(__file__, outside, first=first)
