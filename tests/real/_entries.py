"""Shared by the tests that compare preload/cuda/cuda_table.h with NVIDIA's headers and libraries: the table's lines,
the functions in the headers, and the functions that need no line, with the reasons."""
import re

import support

# Parts of the names of functions that are about memory. Capitals do not matter, because both cudaMalloc and cuMemAlloc
# allocate; they matter only in the short names of other interfaces (GL, VDPAU).
ABOUT = re.compile(r"Captur|Alloc|Free|Bind|Pool|Export|External|Import|Ipc|Multicast|Array|Shareable|Graphics|"
                   r"Mem(Create|Map|Unmap|Release|Retain)|Address(Reserve|Free)|Host(Un)?Register|Endpoint|"
                   r"GreenCtx|Checkpoint|(?-i:GL|VDPAU)", re.I)
# Why functions need no line: the reason, and a regular expression for their names (without suffixes).
REASONS = {
    "it only tells, or sets what is allocated later":
    r"cu(da)?\w*(Array|Mipmapped)\w*Get\w+|cuda?(Array|GetMipmappedArray)\w+|"
    r"cu(da)?Mem(Get|Set)\w*(Pool|Handle|Granularity)|cu(da)?Device[GS]et\w*MemPool|cu(da)?MemPool([GS]et\w+|TrimTo)|"
    r"cudaMipmappedArray\w+|cudaArrayGet\w+|cu(da)?Graph\w*GetParams|cuMulticastGetGranularity|cuTensorMapSet\w+|"
    r"cu(Tex|Surf)Ref[GS]et\w+|cuLogicalEndpoint(Query|GetLimits)|cuGreenCtxGet\w+|cuStreamGetGreenCtx|"
    r"cu(da)?ThreadExchangeStreamCaptureMode|cu(da)?Stream(IsCapturing|GetCaptureInfo|UpdateCaptureDependencies)",
    "it gives no memory, or a place that is bound already": r"cuMulticast(AddDevice|Unbind)|"
    r"cuLogicalEndpoint(AddDevice|Create|Destroy|Export|Import|IdRelease|IdReserve|Unbind)",
    "it copies": r"cuda?Memcpy\w+",
    "what it maps into a sparse array counts until its handles are released (docs/cuda.md, Limits)":
    r"cuMemMapArrayAsync",
    "what it frees is a node's, and ends with the graph": r"cu(da)?GraphAddMemFreeNode",
    "it is about events and semaphores": r"cu(da)?(Graph\w*|Import|Destroy|Signal|Wait)ExternalSemaphore\w*|"
    r"cu(da)?Ipc(Get|Open)EventHandle",
    "memory of other interfaces is not counted (docs/cuda.md)":
    r"cu(da)?(ImportExternalMemory|DestroyExternalMemory|ExternalMemoryGet\w+|Graphics\w+|(W?GL|EGL|VDPAU)\w+)|"
    r"cu(da)?EventCreateFromEGLSync",
    "it exports or imports a pool as such; its pointers have lines":
    r"cu(da)?MemPool(Ex|Im)port(To|From)ShareableHandle",
    "the private tables of the driver": r"cu(da)?GetExportTable",
    "green contexts: their memory is the primary context's":
    r"cu(da)?(GreenCtx(Create|Destroy|StreamCreate|RecordEvent|WaitEvent)|CtxFromGreenCtx)",
    "it is called by another process, or for a whole one": r"cuCheckpoint\w+",
    "it calls the driver's, which has a line": r"cudaStreamBeginRecaptureToGraph",
    "it binds a texture or surface to memory that is there; gone since CUDA 12": r"cuda(Unb|B)ind(Texture|Surface)\w*",
}
# NVIDIA's version of the oldest entries: those of CUDA 2, in part with addresses of 32 bits. They need no line.
FIRST = 2000


def headers():
    """The folders of headers by their version; tests/check has got them from the wheels of PyPI."""
    there = sorted((support.ROOT / "build/cuda-headers").glob("*/cuda.h"))
    return {file.parent.name: file.parent for file in there}


def table():
    """Returns the names of all lines, and (base name, version, whether the stream is the thread's own) for each line
    that has a base name."""
    text = (support.ROOT / "preload/cuda/cuda_table.h").read_text()
    rows = re.findall(r'^(?:ENTRY|RESOLVER)\(\w+, (\w+), "(\w*)", (\d+), ([01])', text, re.M)
    return {row[0] for row in rows}, {(base, int(since), own == "1") for _, base, since, own in rows if base}


def versions(include):
    """What a resolver may answer with: {base: {(version, own stream): arguments}}."""
    text = (include / "cudaTypedefs.h").read_text(errors="replace")
    found = {}
    for base, version, own, arguments in re.findall(r"PFN_(\w+?)_v(\d+)(_ptsz)?\)\((.*?)\);", text, re.S):
        found.setdefault(base, {})[int(version), bool(own)] = " ".join(arguments.split())
    return found


def declared(include):
    """The functions that any header declares: runtime, driver, and the parts for OpenGL, EGL and VDPAU."""
    texts = [file.read_text(errors="replace") for file in sorted(include.glob("cu*.h"))]
    return {name for text in texts for name in re.findall(r"\bCUDA(?:RT)?API\s+(cu\w+)\s*\(", text)}


names, lines = table()
bases = {base for base, _, _ in lines}
reasons = {reason: re.compile(f"({names})(_v[0-9])?(_ptsz)?") for reason, names in REASONS.items()}


def reasons_of(name):
    """The reasons why the function with this name of NVIDIA's, with or without suffix, needs no line."""
    return [reason for reason, matches in reasons.items() if matches.fullmatch(name)]


def is_about_memory(name):
    return bool(ABOUT.search(name))


def meant(base, version, own):
    """Returns the line that a request means, by the rule of cuda_route_meant: (version, whether the stream is the
    thread's own). Returns None if no line is meant."""
    return max(((v, o) for b, v, o in lines if b == base and v <= version and (own or not o)), default=None)
