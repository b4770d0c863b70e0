#!/usr/bin/env python3
"""A library of the program has a function of its own called clone. memstow uses libc's clone for its own threads and
processes. Memory moves out and back, a snapshot is written, and the library's function is never called."""
import _moving, support

OTHER = r"""
int clone_calls;
void *clone(void *p);
void *clone(void *p) { clone_calls++; return p; }
"""
PROGRAM = rf"""
#define _GNU_SOURCE
#include "{support.ROOT}/tests/prog/abi.h"
#include "{support.ROOT}/tests/prog/expect.h"
#include <stdint.h>
#include <sys/mman.h>

enum {{ SIZE = 64 << 20, PAGE = 4096 }};
extern int clone_calls;
extern void *clone(void *p);

int main(void) {{
    char *block = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    abi_find();
    MUST(has_memstow && block != MAP_FAILED);
    for (size_t at = 0; at < SIZE; at += PAGE) block[at] = (char)(at / PAGE);
    int64_t model = abi_memstow_owner_open(MEMSTOW_MODEL, "model", "", 1, 2);
    MUST(model > 0 && abi_memstow_assign((uint32_t)model, block, SIZE) == 0);
    MUST(abi_memstow_owner_idle((uint32_t)model, 1) == 0);
    MUST(abi_memstow_stow((uint32_t)model) == SIZE);
    MUST(abi_memstow_restore((uint32_t)model) == SIZE);
    for (size_t at = 0; at < SIZE; at += PAGE) MUST(block[at] == (char)(at / PAGE));
    say("snapshot %d, %d calls", abi_memstow_snapshot("picture.mst"), clone_calls);
    MUST(clone(block) == block && clone_calls == 1);
    return 0;
}}
"""

for name, text in (("other", OTHER), ("program", PROGRAM)):
    (support.HERE / f"{name}.c").write_text(text)
support.run("cc", "-g", "-shared", "-fPIC", "-o", "libother.so", "other.c")
support.run("cc", "-g", "-pthread", "-o", "program", "program.c", "./libother.so", "-Wl,-rpath,$ORIGIN", "-ldl")
folder = _moving.real_disk()
said = support.track("./program", env={**support.os.environ, "MEMSTOW_STOW_DIR": str(folder)}).stdout
assert said == "snapshot 0, 0 calls\n", said
assert support.report("picture.mst")["totals"]["live_bytes"] >= 64 << 20
assert not list(folder.iterdir())
folder.rmdir()
