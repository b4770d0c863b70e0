#!/usr/bin/env python3
# needs: cc
"""A program that defines malloc itself runs as without memstow. The report says that its heap is not seen, and counts
its mappings."""
import support

PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static char heap[1 << 24];
static size_t used;

void *malloc(size_t size) {
    used = (used + 31) & ~(size_t)15; /* 16 bytes in front of each block: its size */
    char *p = heap + used;
    if (used + size > sizeof heap)
        return NULL;
    *(size_t *)(p - 16) = size;
    used += size;
    return p;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t each) {
    void *p = malloc(n * each);
    return p ? memset(p, 0, n * each) : NULL;
}
void *realloc(void *p, size_t size) {
    void *q = malloc(size);
    if (p && q)
        memcpy(q, p, size < ((size_t *)p)[-2] ? size : ((size_t *)p)[-2]);
    return q;
}

int main(void) {
    char *p = strdup("from its own heap"), *q = realloc(p, 100);
    void *mapped = mmap(NULL, 3 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *several = reallocarray(strdup("several"), 10, 10); /* which calls realloc in libc, too */
    printf("%s %d %d\n", q, q > heap && q < heap + sizeof heap, mapped != MAP_FAILED);
    printf("%s %d\n", several, several > heap && several < heap + sizeof heap);
    free(several);
    return 0;
}
"""
program = support.compile(PROGRAM, "own", ["-O1", "-fno-builtin", "-rdynamic"])
plain = support.run(program)
tracked = support.track(program)
assert (tracked.stdout,
        tracked.stderr) == (plain.stdout, plain.stderr) == ("from its own heap 1 1\nseveral 1\n", ""), tracked
report = support.report()
assert any("defines malloc itself" in note for note in report["process"]["notes"]), report["process"]
assert "defines malloc itself" in support.memstow("report", "out.mst").stdout
assert report["totals"]["mapped"]["live_bytes"] >= 3 << 20, report["totals"]
