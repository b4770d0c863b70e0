#!/usr/bin/env python3
"""What libmemstow.so calls of others: a short list, with a reason for each name. Whoever stands in front of libc is
called in its place, an allocator in the middle of its own malloc or a sanitizer that has not begun; so hooks and what
begins a ledger call functions of the library's own (bytes.c), or libc's past everybody (LIBC in symbol.h). Thread-local
storage is there from the start."""
import re

import support

WHY = {
    # Data, and what only gives an address; nobody has reason to define these otherwise.
    "environ": "data", "stderr": "data", "stdout": "data", "__libc_stack_end": "data",
    "__errno_location": "gives the address of errno",
    "_dl_find_object": "the loader's: no lock, no memory",
    # The allocator behind us, where no other one is.
    "__libc_malloc": "serves blocks", "__libc_calloc": "serves blocks", "__libc_realloc": "serves blocks",
    "__libc_memalign": "serves blocks", "__libc_free": "serves blocks",
    # What reallocarray and free_sized are made of, in libc too: a program's allocator may not have them.
    "realloc": "the program's", "free": "the program's",
    # In our constructor alone (process_watch).
    "__register_atfork": "in the constructor", "__cxa_at_quick_exit": "in the constructor",
    # Threads and signal handlers are the program's view of them: a sanitizer must know of each. They come when the
    # program asks, through the ABI or by a call of CUDA's, never in a hook of malloc or mmap.
    **dict.fromkeys([
        "pthread_create", "pthread_join", "pthread_clockjoin_np", "pthread_tryjoin_np", "pthread_detach",
        "pthread_attr_init", "pthread_attr_destroy", "pthread_attr_setstack", "pthread_attr_setdetachstate",
        "pthread_setcancelstate", "pthread_sigmask", "sigaction", "sigfillset", "sigdelset"
    ], "threads of our own, and handlers of shutdown.c"),
    # What the compiler puts into every library.
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
