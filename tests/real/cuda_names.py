#!/usr/bin/env python3
# Every function of NVIDIA's headers, from CUDA 11.8 to 13.5, whose name is about memory, captures, binding, pools or
# other processes has a line in cuda_table.h, or stands here with the reason why it needs none. And a later version of
# an entry that is in the table has a line of its own, unless its arguments are the same: else a program that asks the
# driver for the later version would get a hook that passes other arguments.
# needs: cuda-headers
import re

import support

ABOUT = re.compile(r"Capture|Alloc|Free|Bind|Pool|Export|External|Import|Ipc|Multicast|Array|Shareable|Graphics|"
                   r"Mem(Create|Map|Unmap|Release|Retain)|Address(Reserve|Free)|Host(Un)?[Rr]egister|Endpoint|"
                   r"GreenCtx|Checkpoint")
# Names (without suffixes) as expressions, and why they need no line.
REASONS = {
    "it only tells, or sets what is allocated later":
    r"cu(da)?\w*(Array|Mipmapped)\w*Get\w+|cuda?(Array|GetMipmappedArray)\w+|"
    r"cu(da)?Mem(Get|Set)\w*(Pool|Handle|Granularity)|cu(da)?Device[GS]et\w*MemPool|cu(da)?MemPool([GS]et\w+|TrimTo)|"
    r"cudaMipmappedArray\w+|cudaArrayGet\w+|cu(da)?Graph\w*GetParams|cuMulticastGetGranularity|cuTensorMapSet\w+|"
    r"cu(Tex|Surf)Ref[GS]et\w+|cuLogicalEndpoint(Query|GetLimits)|cuGreenCtxGet\w+|cuStreamGetGreenCtx|"
    r"cu(da)?ThreadExchangeStreamCaptureMode|cu(da)?Stream(GetCaptureInfo|UpdateCaptureDependencies)",
    "it gives no memory, or a place that is bound already": r"cuMulticast(AddDevice|Unbind)|"
    r"cuLogicalEndpoint(AddDevice|Create|Destroy|Export|Import|IdRelease|IdReserve|Unbind)",
    "it copies": r"cuda?Memcpy\w+|cuMemMapArrayAsync",
    "what it frees is a node's, and ends with the graph": r"cu(da)?GraphAddMemFreeNode",
    "it is about events and semaphores": r"cu(da)?(Graph\w*|Import|Destroy|Signal|Wait)ExternalSemaphore\w*|"
    r"cu(da)?Ipc(Get|Open)EventHandle",
    "memory of other interfaces is not counted (docs/cuda.md)":
    r"cu(da)?(ImportExternalMemory|DestroyExternalMemory|ExternalMemoryGet\w+|Graphics\w+)",
    "it exports or imports a pool as such; its pointers have lines":
    r"cu(da)?MemPool(Ex|Im)port(To|From)ShareableHandle",
    "the private tables of the driver": r"cu(da)?GetExportTable",
    "green contexts: their memory is the primary context's":
    r"cu(da)?(GreenCtx(Create|Destroy|StreamCreate|RecordEvent|WaitEvent)|CtxFromGreenCtx)",
    "it is called by another process, or for a whole one": r"cuCheckpoint\w+",
    "it calls the driver's, which has a line": r"cudaStreamBeginRecaptureToGraph",
    "it binds a texture or surface to memory that is there; gone since CUDA 12": r"cudaBind(Texture|Surface)\w*",
}
WANTED = "11.8 12.0 12.1 12.2 12.3 12.4 12.5 12.6 12.8 12.9 13.0 13.1 13.2 13.3 13.4 13.5".split() # as cmake/setup.sh
# Versions of CUDA 2 and 3 on 32-bit systems.
FIRST = 2000


def headers():
    """The folders of headers by their version; tests/check has got them from the wheels of PyPI."""
    there = sorted((support.ROOT / "build/cuda-headers").glob("*/cuda.h"))
    return {file.parent.name: file.parent for file in there}


def table():
    """Its names; and of each line with a base name: that, the version, and whether the stream is the thread's own."""
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


names, lines = table()
bases = {base for base, _, _ in lines}
reasons = {reason: re.compile(f"({names})(_v[0-9])?(_ptsz)?") for reason, names in REASONS.items()}
used = set()


def unknown_in(include, entries):
    """The names that are neither in the table nor have a reason."""
    text = (include / "cuda_runtime_api.h").read_text(errors="replace")
    runtime = set(re.findall(r"CUDARTAPI\s+(cuda\w+)\s*\(", text))
    unknown = set()
    for name in {base for base in entries if base not in bases} | (runtime - names):
        why = [reason for reason, matches in reasons.items() if matches.fullmatch(name)]
        used.update(why)
        if ABOUT.search(name) and not why:
            unknown.add(name)
    return sorted(unknown)


def prefixes(array):
    """The words of one array in cuda_route_is_unknown_memory."""
    text = (support.ROOT / "preload/cuda/cuda_route.c").read_text()
    return tuple(re.findall(r'"(\w+)"', re.search(rf"const {array}\[\] = {{(.*?)}}", text, re.S)[1]))


def reported_in(entries):
    """Known names that a report would call unknown."""
    return sorted(base for base in entries if base not in bases and base.startswith(prefixes("memory")) and
                  not base.startswith(prefixes("harmless")))


def misled_in(entries):
    """The versions of entries that would get a hook with other arguments, or none."""
    for base in bases & set(entries):
        for (version, own), arguments in sorted(entries[base].items()):
            older = [v for b, v, o in lines if b == base and o == own and v <= version]
            if not older:
                if version != FIRST:
                    yield f"{base} of version {version} has no line"
            elif max(older) != version and entries[base].get((max(older), own)) != arguments:
                yield f"{base} of version {version} has other arguments than the line of {max(older)}"


found = headers()
if not found:
    support.skip("no headers of CUDA are installed")
faults = []
for label, include in found.items():
    entries = versions(include)
    assert len(entries) > 350, f"{label}: {len(entries)}"
    unknown, misled = unknown_in(include, entries), list(misled_in(entries))
    print(f"{label}: {len(entries)} entries of the driver, {len(unknown) + len(misled)} faults")
    if unknown:
        faults.append(f"{label}: neither in the table nor with a reason: {', '.join(unknown)}")
    faults += [f"{label}: {fault}" for fault in misled]
    faults += [f"{label}: the report would count {name} as unknown" for name in reported_in(entries)]
assert not faults, "\n".join(faults)
missing = sorted(set(WANTED) - set(found))
assert not missing, f"no headers of {', '.join(missing)}"
assert used == set(REASONS), f"reasons of nothing: {set(REASONS) - used}"
