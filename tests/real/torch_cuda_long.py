#!/usr/bin/env python3
# long
# timeout: 3600
# needs: cc torch
"""Tests PyTorch's CUDA build (PyPI's default wheel) without a device. torch.cuda.MemPool, use_mem_pool, and two
functions of torch._C have the signatures with which memstow's pools call them. Before memstow makes a pool, it asks
PyTorch which allocator is in use. PyTorch's answer is right for each of its allocators: native, cudaMallocAsync, and
pluggable (the program's own). tests/real/torch_pool_signatures.py reads the signatures from a PyTorch without CUDA.

The test also runs a program under memstow that imports this build: first without a driver, then over the simulated
driver, a test double. Both times the program runs to its end. The build takes 4.7 GB in the test's own folder. The test
deletes it at the end."""
import json, os, re, shutil, sys

import support

ROOM = 12 << 30 # bytes that pip may need while it unpacks
SITE = support.HERE / "site"
PLUGGABLE = """
#include <stddef.h>
void *make(ptrdiff_t bytes, int device, void *stream) { (void)bytes, (void)device, (void)stream; return NULL; }
void drop(void *at, ptrdiff_t bytes, int device, void *stream) { (void)at, (void)bytes, (void)device, (void)stream; }
"""
# Prints facts about the build of PyTorch, as JSON. The argument is the library of an allocator.
ASK = """
import inspect, json, sys
import torch, memstow_pools

def words(function):
    return list(inspect.signature(function).parameters)

def refusal(call):
    try:
        call()
    except (RuntimeError, TypeError) as error:
        return type(error).__name__ + ": " + str(error).split("\\n")[0]

def declared(name):
    return getattr(torch._C, name).__doc__.strip()

memory = torch.cuda.memory
before = torch.cuda.get_allocator_backend(), memstow_pools.possible(torch)
said = {"version": torch.__version__, "cuda": torch.version.cuda, "before": before,
        "MemPool": words(torch.cuda.MemPool.__init__), "use_mem_pool": words(torch.cuda.use_mem_pool),
        "defaults": [p.default is not p.empty for p in
                     list(inspect.signature(torch.cuda.MemPool.__init__).parameters.values())[1:]],
        "id": isinstance(inspect.getattr_static(torch.cuda.MemPool, "id"), property),
        "is": [c.__module__ + "." + c.__qualname__ for c in torch.cuda.MemPool.__mro__],
        "functions": {name: declared(name) for name in ("_cuda_beginAllocateCurrentThreadToPool", "_cuda_releasePool")},
        "pool": refusal(torch.cuda.MemPool), "one": refusal(lambda: torch._C._cuda_releasePool(0)),
        "pluggable": words(memory.CUDAPluggableAllocator.__init__), "initialized": torch.cuda.is_initialized(),
        "available": torch.cuda.is_available(), "devices": torch.cuda.device_count()}
if len(sys.argv) > 1:
    memory.change_current_allocator(memory.CUDAPluggableAllocator(sys.argv[1], "make", "drop"))
    said["after"] = torch.cuda.get_allocator_backend(), memstow_pools.possible(torch)
print(json.dumps(said))
"""
# This program uses the module memstow as it would on a machine with a device. Here, without a device, nothing enters a
# pool.
USE = """
import json, torch, memstow
net = memstow.owner("net", keys=(1, 0))
with memstow.scope(net):
    weights = torch.ones(1 << 20)
memstow.drop_pools()
print(json.dumps([memstow.active(), float(weights.sum()), torch.cuda.is_available(), memstow.figures(net).live_bytes]))
"""


def install():
    """Installs the PyTorch version that the other tests use, as PyPI has it. With `===` pip does not accept a local
    build of that version."""
    version = re.search(r"torch==([\d.]+)", (support.ROOT / "cmake/setup.sh").read_text())[1]
    if shutil.disk_usage(support.HERE).free < ROOM:
        support.skip(f"there is no room of {ROOM >> 30} GiB for PyTorch's CUDA build")
    done = support.run(sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--no-cache-dir",
                       "--target", SITE, f"torch==={version}", status=None, timeout=3000)
    if done.returncode:
        support.skip(f"PyTorch's CUDA build cannot be installed: {done.stderr.strip().splitlines()[-1]}")


def environment(**more):
    paths = (SITE, support.ROOT / "tools/python", os.environ["PYTHONPATH"])
    return {**os.environ, "PYTHONPATH": ":".join(map(str, paths)), **more}


def ask(*arguments, **more):
    return json.loads(support.run(sys.executable, "-c", ASK, *arguments, env=environment(**more), timeout=300).stdout)


def check():
    allocator = support.compile(PLUGGABLE, name="allocator.so", flags=("-O1", "-shared", "-fPIC"))
    said = ask(allocator)
    assert said["cuda"] and said["version"].endswith("+cu" + said["cuda"].replace(".", "")), said
    # As memstow_pools.py calls them.
    assert said["MemPool"][0] == "self" and all(said["defaults"]) and said["id"], said
    assert "torch._C._MemPool" in said["is"], said["is"]
    assert said["use_mem_pool"] == ["pool", "device"], said
    for name, text in said["functions"].items():
        wanted = rf"{name}\(arg0: [^,()]*(int|Int)[^,()]*, arg1: tuple\[[^()]*\]\) -> None"
        assert re.fullmatch(wanted, text), text
    assert said["one"].startswith("TypeError"), said["one"] # it takes two arguments
    # Without a device, CUDA has not begun. So memstow does not know yet whether pools are possible, and PyTorch cannot
    # make a pool.
    assert not said["available"] and not said["devices"] and not said["initialized"], said
    assert said["pool"].startswith("RuntimeError"), said["pool"]
    assert said["before"] == ["native", None], said["before"]
    # Now the program has an allocator of its own. Once CUDA has begun, memstow asks PyTorch for the kind of the
    # allocator. It makes pools only if this is PyTorch's native allocator.
    assert said["pluggable"] == ["self", "path_to_so_file", "alloc_fn_name", "free_fn_name"], said
    assert said["after"][0] == "pluggable", said["after"]
    asynchronous = ask(PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
    assert asynchronous["before"][0] == "cudaMallocAsync", asynchronous["before"]

    for driver in (None, support.BUILD / "tests/simcuda/lib"): # none, and the simulated one
        more = {"LD_LIBRARY_PATH": str(driver), "SIMCUDA_VERSION": "13050"} if driver else {}
        done = support.track(sys.executable, "-c", USE, env=environment(**more), timeout=300)
        active, total, available, live = json.loads(done.stdout.splitlines()[-1])
        assert active and total == 1 << 20 and not available and live >= 4 << 20, done.stdout
        assert not support.report()["totals"]["cuda"]["live_bytes"], support.report()["totals"]
        print(f"{'the simulated driver' if driver else 'no driver'}: {done.stderr.strip()[:400] or 'nothing said'}")
    print(said["version"], said["functions"]["_cuda_releasePool"])


try:
    install()
    check()
finally:
    shutil.rmtree(SITE, ignore_errors=True)
