#!/usr/bin/env python3
# timeout: 300
"""Without a prefix, a loop leaves no file, whether its process ends, fails, is interrupted (Ctrl-C) or is killed. With
a prefix, the unfinished iteration leaves nothing, and the last committed one is left."""
import os, signal

import _state, support

folder = _state.real_disk()
CODE = """if True:
    import memstow_state, os, sys, time
    prefix = {"persist_prefix": "p", "directory": %r} if %r == "prefix" else {}
    store = memstow_state.open("loop", use_ram=%r == "ram", **prefix)
    store.begin(); store.put("x", b"1" * 3000000); store.commit()
    store.begin(); store.put("x", b"2" * 3000000)
    print(os.getpid(), flush=True)
    if %r == "error":
        raise RuntimeError("a node")
    if %r != "end":
        time.sleep(100)
    """
for where in ("ram", "file", "prefix"):
    for ending in ("end", "error", "SIGINT", "SIGKILL"):
        process = _state.start(support.PYTHON, "-c", CODE % (str(folder), where, where, ending, ending), folder=folder)
        pid = int(process.stdout.readline())
        if ending.startswith("SIG"):
            os.kill(pid, getattr(signal, ending))
        process.communicate(timeout=60)
        left = sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != "lock")
        assert left == (["manifest", "x.1.value"] if where == "prefix" else []), (where, ending, left)
        if where == "prefix":
            _state.python("""
                store = memstow_state.open("loop", persist_prefix="p", directory=folder)
                assert store.generation == 1 and store.get("x") == b"1" * 3000000
                store.close()
                """, folder)
        assert not list(folder.iterdir()), (where, ending, list(folder.iterdir()))
# The store asks the kernel for a queue (io_setup) only before it writes something large to a file, because the end of a
# queue costs a process some 20 ms.
_state.python("""
    import ctypes

    def has_queue():
        return "[aio]" in pathlib.Path("/proc/self/maps").read_text()

    def kernel_has_queues():
        libc, queue = ctypes.CDLL(None), ctypes.c_ulong(0)
        if libc.syscall(206, 8, ctypes.byref(queue)):  # io_setup
            return False
        seen = has_queue()
        assert libc.syscall(207, queue) == 0 and not has_queue()  # io_destroy
        return seen

    can = kernel_has_queues()
    for place, size, opens_one in (({}, 4 << 20, False), ({"use_ram": False}, 1 << 19, False),
                                   ({"use_ram": False}, 4 << 20, True)):
        with memstow_state.open("loop", **place) as store:
            store.begin(); store.put("x", bytes(size)); store.commit()
        assert has_queue() == (opens_one and can), (place, size, can)
    if not can:
        print("no queue is seen, because the kernel refuses queues or does not show them")
    """, folder)
# If somebody has shortened a value's file, reading the value fails with an error, and there is no SIGBUS.
_state.python("""
    store = memstow_state.open("loop", persist_prefix="p", directory=folder)
    store.begin(); store.put("x", b"1" * 3000000); store.commit()
    for file in pathlib.Path(folder).rglob("*.value"):
        os.truncate(file, 0)
    try:
        store.get("x")
        raise AssertionError("there is nothing any more")
    except memstow_state.StateError as error:
        assert error.errno == 5, error
    store.close()
    """, folder)
folder.rmdir()
