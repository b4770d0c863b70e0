#!/usr/bin/env python3
# needs: cc stacks
"""A block is freed twice. The report names the first free, even if another library has addresses with the same lower
halves. The record of a large block holds the whole address of the first free. The note in a small block holds only the
lower half. This half is enough, because only one of the two addresses with this half comes directly after a call."""
import pathlib

import support

# One library calls free where the other has no call.
SOURCE = r"""
#include <stdlib.h>
#define STAY __asm__ volatile("" ::: "memory")
char room[0xA000];
__attribute__((aligned(4096))) void *make(size_t size) { void *p = malloc(size); STAY; return p; }
#ifdef OTHER
void drop(void *p) { __asm__ volatile(".fill 256, 1, 0x90"); }
void drop_again(void *p) { __asm__ volatile(".fill 256, 1, 0x90"); }
#else
void drop(void *p) { free(p); STAY; }
void drop_again(void *p) { free(p); STAY; }
__asm__(".fill 512, 1, 0x90");
#endif
"""
support.HERE.joinpath("library.c").write_text(SOURCE)
for name, flags in (("one", []), ("other", ["-DOTHER"])):
    support.run("cc", "-g", "-O1", "-w", "-shared", "-fPIC", "-fno-builtin", "-fno-optimize-sibling-calls", *flags,
                "library.c", "-o", f"lib{name}.so")
program = support.compile(pathlib.Path(__file__).with_name("misuse_halves.c"), flags=("-g", "-O1", "-w", "-ldl"))
for how in ("large", "small"):
    ended = support.memstow("run", "--quiet", "-o", "out.mst", "--", program, how, status=None)
    assert ended.returncode > 128, ended
    misuse, = support.report("out.mst")["misuses"]
    places = [misuse[place] for place in ("allocated", "freed_first", "now")]
    functions = [place and place["stack"][0]["function"] for place in places]
    assert functions == ["make", "drop", "drop_again"], (how, functions, ended.stderr)
