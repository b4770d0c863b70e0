#!/usr/bin/env python3
# needs: cc deb:libjemalloc2 deb:libmimalloc2.0 deb:libtcmalloc-minimal4
# timeout: 300
"""A program with jemalloc, mimalloc or tcmalloc keeps its allocator and works, whether it is linked against the
allocator, or the allocator is preloaded behind memstow. Its memory is counted to the byte, and its resident set is
explained. The same holds with --allocator=mimalloc. realloc to 0 bytes does what it does in that allocator: it frees
the block, or it returns a block."""
import os, pathlib

import support
from _report import check_residency

ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4"}
SOURCE = pathlib.Path(__file__).with_name("_exerciser.c")
FLAGS = ["-O1", "-g", "-pthread", "-fno-builtin", "-Wno-deprecated-declarations"]


# Tells for each size whether a block is left.
RESIZED = r"""
#include <stdio.h>
#include <stdlib.h>
int main(void) {
    for (size_t size = 1; size < 100000000; size *= 30) printf("%d", realloc(malloc(size), 0) != NULL);
}
"""


def check_resized(title, flags, preload=None):
    program = support.compile(RESIZED, f"resized_{title}", [*FLAGS, *flags])
    env = {**os.environ, "LD_PRELOAD": preload} if preload else os.environ
    alone = support.run(program, env=env).stdout
    tracked = support.track(program, file="resized.mst", env=env).stdout
    assert tracked == alone and len(alone) == 6, (title, alone, tracked)
    assert counted("resized.mst", program) == (0, alone.count("1")), (title, counted("resized.mst", program))
    print(title, "resized to 0 bytes:", alone)


def link(name, *flags):
    return support.compile(SOURCE, name, [*FLAGS, *flags])


def counted(file, program):
    """Live bytes and blocks of the program's own call sites."""
    sites = [s for s in support.report(file)["sites"]
             if any(pathlib.Path(f["module"] or "").name == program.name for f in s["stack"][:1])]
    return sum(s["live_bytes"] for s in sites), sum(s["live_blocks"] for s in sites)


def check(title, program, preload=None, options=(), foreign=True):
    env = {**os.environ, "LD_PRELOAD": preload} if preload else os.environ
    file = f"{title}.mst"
    known = tuple(map(int, support.track(program, options=options, file=file, env=env).stdout.split()))
    assert counted(file, program) == known, f"{title}: counted {counted(file, program)}, the program knows {known}"
    report = support.report(file)
    assert report["process"]["foreign_allocator"] == foreign, f"{title}: {report['process']}"
    check_residency(report)
    print(title, known)


check_resized("glibc", [])
plain = link("plain")
check("glibc", plain, foreign=False)
for name, library in ALLOCATORS.items():
    with_it = ["-Wl,--no-as-needed", f"-l:{library}"]
    check_resized(name, with_it)
    linked = link(f"with_{name}", *with_it)
    check(f"{name}-linked", linked)
    if not support.features()["sanitize"]: # the command itself would start over that allocator
        check(f"{name}-preloaded", plain, preload=library)
        check_resized(f"{name}-preloaded", [], preload=library)
    if support.features()["mimalloc"]:
        check(f"{name}-replaced", linked, options=["--allocator=mimalloc"], foreign=False)
