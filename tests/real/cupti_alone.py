#!/usr/bin/env python3
# On a machine without a driver, PyPI's CUPTI of CUDA 12 and 13 answers the same with and without memstow, and
# libmemstow_cupti.so understands this answer. CUPTI has the functions that docs/cuda.md says.
# needs: cc pip:nvidia-cuda-cupti>=13,<14 pip:nvidia-cuda-cupti-cu12
import pathlib, sys

import support, _cupti

CLIENT = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
version, handle = ctypes.c_uint32(), ctypes.c_void_p()
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.c_void_p)(lambda *of: None)
print(library.cuptiGetVersion(ctypes.byref(version)), version.value)
print(library.cuptiSubscribe(ctypes.byref(handle), callback, None))
print(library.cuptiActivityEnable(49))
print(library.cuptiActivityFlushAll(1))
"""
INJECTED = """
import ctypes, sys
cupti = ctypes.CDLL(sys.argv[1])
print(ctypes.CDLL(sys.argv[2]).InitializeInjection())
"""

found = [library for folder in _cupti.folders() for library in sorted(folder.glob("**/libcupti.so.1[23]"))]
if not found:
    support.skip("no CUPTI is installed")
for library in found:
    _cupti.as_documented(_cupti.version_of(library.parent.parent / "include"), library)
    alone = support.run(sys.executable, "-c", CLIENT, library).stdout
    version_result, version, subscribe_result = map(int, alone.split()[:3])
    if subscribe_result == 0:
        support.skip("there is a CUDA driver here: tests/gpu has the rest")
    tracked = support.track(sys.executable, "-c", CLIENT, library).stdout
    assert tracked == alone, f"{library.name}\nalone:\n{alone}\nunder memstow:\n{tracked}"
    done = support.track(sys.executable, "-c", INJECTED, library, support.BUILD / "libmemstow_cupti.so")
    assert done.stdout == "1\n", done.stdout
    cupti = support.report()["cuda"]["cupti"]
    wanted = ("cuptiGetVersion", version_result) if version_result else ("cuptiSubscribe", subscribe_result)
    assert cupti["state"] == "refused" and (cupti["failed_call"], cupti["result"]) == wanted, (cupti, alone)
    assert cupti["version"] == version, cupti
    assert pathlib.Path(cupti["library"]).name == library.name, cupti["library"]
    # With --cupti, CUPTI is the source of the ledger. It has no records here, either, and memstow says why.
    done = support.memstow("run", "--cupti", "-o", "source.mst", "--", sys.executable, "-c", INJECTED, library,
                           support.BUILD / "libmemstow_cupti.so")
    source = support.report("source.mst")
    assert done.stdout == "1\n" and "no source: " in done.stderr, (done.stdout, done.stderr)
    assert source["process"]["source"] == "cupti" and source["process"]["state"] == "exited", source["process"]
    assert {k: source["cuda"]["cupti"][k] for k in ("state", "failed_call", "result", "version")} == {
        k: cupti[k] for k in ("state", "failed_call", "result", "version")}, source["cuda"]["cupti"]
    print(library.name, "answers as without memstow:", " ".join(alone.split()))
