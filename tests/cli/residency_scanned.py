#!/usr/bin/env python3
# needs: cc
"""A process with 64 TiB of address space, as sanitizers map it, is reported quickly. (To look at each page would take
minutes.) Its resident pages are found, while the process runs and at its end. The parts add up to RSS. Neither RSS nor
a part includes pages that were only read: for them the kernel maps its one page of zeros."""
import os, platform, subprocess

import support
from _ledger import MIB

if tuple(map(int, platform.release().split(".")[:2])) < (6, 7):
    support.skip("this kernel has no PAGEMAP_SCAN")

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
enum { MIB = 1 << 20 };
static volatile char zeros[32 * MIB];
int main(int count, char **arguments) {
    size_t length = (size_t)64 << 40;
    char *space = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int sum = 0;
    if (space == MAP_FAILED) return 77;
    memset(space + length / 2, 1, 8 * MIB);
    for (int i = 0; i < 32 * MIB; i += 4096) sum += zeros[i];
    printf("%d\n", getpid() + sum);
    fflush(stdout);
    if (count > 1) pause();
    return 0;
}
"""


def check(part, when):
    figures = {k: v for k, v in part.items() if k.endswith("_bytes")}
    parts = sum(v for k, v in figures.items() if k not in ("rss_bytes", "memstow_header_bytes"))
    assert parts == part["rss_bytes"] < 32 * MIB, f"{when}: {figures}"
    assert 8 * MIB <= part["mapped_anonymous_bytes"] < 9 * MIB, f"{when}: {figures}"


program = support.compile(PROGRAM)
if support.run(program, status=None).returncode == 77:
    support.skip("64 TiB of address space are not available")
running = support.start(support.MEMSTOW, "run", "--quiet", "-o", "runs.mst", "--", program, "waits",
                        stdout=subprocess.PIPE, text=True)
pid = int(running.stdout.readline())
check(support.report(pid)["residency"], "while it runs")
os.kill(pid, 9)
support.track(program)
check(support.report()["residency"], "at its end")
