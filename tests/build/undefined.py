#!/usr/bin/env python3
"""libmemstow.so takes only the symbols in WHY from other libraries; each has its reason there. A call by
name may reach a library in front of libc that cannot serve the call at that moment, such as an allocator in the middle
of its own malloc, or a sanitizer that has not begun. So hooks, and the code that begins a ledger, call functions of
memstow (bytes.c), or libc's directly (LIBC in symbol.h). The test also checks that thread-local storage is
initial-exec."""
import re

import support

WHY = {
    # data, and functions that only return an address: no library replaces these
    "environ": "data", "stderr": "data", "stdout": "data", "__libc_stack_end": "data",
    "__errno_location": "gives the address of errno",
    "_dl_find_object": "the loader's: no lock, no memory",
    # The allocator behind ours, if there is no other.
    "__libc_malloc": "serves blocks", "__libc_calloc": "serves blocks", "__libc_realloc": "serves blocks",
    "__libc_memalign": "serves blocks", "__libc_free": "serves blocks",
    # Our reallocarray and free_sized call realloc and free, as libc's do, because the program's allocator may have only
    # these two.
    "realloc": "the program's", "free": "the program's",
    # Called in our constructor only (process_watch).
    "__register_atfork": "in the constructor", "__cxa_at_quick_exit": "in the constructor",
    # Called at the first request for device memory that memstow serves (vram_thread_ends_with_program).
    "__cxa_atexit": "in a call of CUDA's",
    # Functions that make threads and signal handlers. A sanitizer must know of each thread and handler, so memstow
    # calls these functions by name. It calls them on request of the program, through the ABI or by a call of CUDA's,
    # never in a hook of malloc or mmap.
    **dict.fromkeys([
        "pthread_create", "pthread_join", "pthread_clockjoin_np", "pthread_tryjoin_np", "pthread_detach",
        "pthread_attr_init", "pthread_attr_destroy", "pthread_attr_setstack", "pthread_attr_setdetachstate",
        "pthread_setcancelstate", "pthread_sigmask", "sigaction", "sigfillset", "sigdelset"
    ], "threads of our own, and handlers of shutdown.c"),
    # The compiler puts these into every library.
    "__cxa_finalize": "the compiler's",
    "__gmon_start__": "the compiler's",
    "_ITM_registerTMCloneTable": "the compiler's",
    "_ITM_deregisterTMCloneTable": "the compiler's",
}
CUDA = set(
    re.findall(r"^(?:ENTRY|RESOLVER)\(\w+, (\w+),", (support.ROOT / "preload/cuda/cuda_table.h").read_text(), re.M))

relocations = re.findall(r"^[0-9a-f]+ +[0-9a-f]+ (R_X86_64_\w+) +(?:[0-9a-f]+ (\w[\w@.]*)(?: \+ \w+)?)?",
                         support.run("readelf", "-rW", support.LIBRARY).stdout, re.M)
called = {name.split("@")[0] for _, name in relocations if name}
assert len(relocations) > 500 and {"__libc_malloc", "_dl_find_object"} <= called, "the relocations could not be read"
strange = sorted(called - set(WHY) - CUDA)
assert not strange, (f"called by name, so that others may stand in front of it: {', '.join(strange)} (symbol.h has "
                     f"LIBC for libc's)")
unused = sorted(set(WHY) - called)
assert not unused, f"listed, and not called: {', '.join(unused)}"
lazy = sorted({kind
               for kind, _ in relocations}
              & {"R_X86_64_DTPMOD64", "R_X86_64_DTPOFF64", "R_X86_64_TLSDESC", "R_X86_64_IRELATIVE"})
assert not lazy, f"thread-local storage that is allocated at its first use, or functions chosen at the start: {lazy}"
