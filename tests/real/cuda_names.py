#!/usr/bin/env python3
# The test looks through NVIDIA's headers, from CUDA 11.8 to 13.5, for functions whose names are about memory, captures,
# binding, pools or other processes. Each of these functions has a line in cuda_table.h, or _entries.py gives the reason
# why it needs none. If a later version of an entry in the table has other arguments, that version has a line of its
# own. Otherwise a program that asks the driver for the later version would get a hook that passes the wrong arguments.
# needs: cuda-headers
import re

import support, _entries

WANTED = "11.8 12.0 12.1 12.2 12.3 12.4 12.5 12.6 12.8 12.9 13.0 13.1 13.2 13.3 13.4 13.5".split() # as cmake/setup.sh
used = set()


def base_of(name):
    return re.sub(r"(_v\d+)?(_pt[ds]z?)?$", "", name)


def unknown_in(include, entries):
    """The names of functions that are about memory, have no line in the table, and no reason why they need none."""
    declared = {name for name in _entries.declared(include) - _entries.names if base_of(name) not in _entries.bases}
    unknown = set()
    for name in {base for base in entries if base not in _entries.bases} | declared:
        why = _entries.reasons_of(name)
        used.update(why)
        if _entries.is_about_memory(name) and not why:
            unknown.add(name)
    return sorted(unknown)


def words(array):
    """The words of one of the arrays that cuda_route_is_unknown_memory uses."""
    text = (support.ROOT / "preload/cuda/cuda_route.c").read_text()
    return tuple(re.findall(r'"(\w+)"', re.search(rf"const {array}\[\] = {{(.*?)}}", text, re.S)[1]))


def reported_in(entries):
    """Known names that a report would call unknown."""
    return sorted(base for base in entries if base not in _entries.bases and base.startswith(words("memory")) and
                  base not in words("harmless") and not base.startswith(words("families")))


def misled_in(entries):
    """Yields a text about each version of an entry that would get no hook, or a hook whose arguments are not those of
    this version."""
    for base in _entries.bases & set(entries):
        for (version, own), arguments in sorted(entries[base].items()):
            older = [v for b, v, o in _entries.lines if b == base and o == own and v <= version]
            if not older:
                if version != _entries.FIRST:
                    yield f"{base} of version {version} has no line"
            elif max(older) != version and entries[base].get((max(older), own)) != arguments:
                yield f"{base} of version {version} has other arguments than the line of {max(older)}"


# is_about_memory() finds names that are about memory, in every spelling, and no other names.
for name in ("cudaMalloc", "cudaMallocPitch", "cudaMallocHost", "cuMemAlloc", "cuStreamIsCapturing", "cuGLCtxCreate",
             "cudaVDPAUSetVDPAUDevice", "cuMemMapArrayAsync", "cuMemHostRegister"):
    assert _entries.is_about_memory(name), name
for name in ("cuLaunchKernel", "cudaGetSymbolAddress", "cudaSingleton"):
    assert not _entries.is_about_memory(name), name
assert not any("copies" in reason for reason in _entries.reasons_of("cuMemMapArrayAsync")), "it maps"

found = _entries.headers()
if not found:
    support.skip("no headers of CUDA are installed")
faults = []
for label, include in found.items():
    entries = _entries.versions(include)
    assert len(entries) > 350, f"{label}: {len(entries)}"
    seen = _entries.declared(include)
    assert {"cudaMalloc", "cuMemAlloc", "cuGLCtxCreate", "cudaGLMapBufferObject", "cuVDPAUCtxCreate",
            "cuEGLStreamConsumerConnect"} <= {base_of(name) for name in seen}, f"{label}: a header was not read"
    unknown, misled = unknown_in(include, entries), list(misled_in(entries))
    print(f"{label}: {len(entries)} entries of the driver, {len(unknown) + len(misled)} faults")
    if unknown:
        faults.append(f"{label}: neither in the table nor with a reason: {', '.join(unknown)}")
    faults += [f"{label}: {fault}" for fault in misled]
    faults += [f"{label}: the report would count {name} as unknown" for name in reported_in(entries)]
assert not faults, "\n".join(faults)
missing = sorted(set(WANTED) - set(found))
assert not missing, f"no headers of {', '.join(missing)}"
real = {base for include in found.values() for base in _entries.versions(include)}
assert set(words("harmless")) <= real, f"no functions of NVIDIA's: {set(words('harmless')) - real}"
assert used == set(_entries.REASONS), f"reasons of nothing: {set(_entries.REASONS) - used}"
