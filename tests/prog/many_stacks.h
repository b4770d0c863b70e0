/* many_stacks.h — a small block from each of many call stacks, so that a picture of the peak takes several steps. */
#ifndef MANY_STACKS_H
#define MANY_STACKS_H

#include <stdlib.h>

enum { LEVELS = 13, STACKS = 1 << LEVELS, SMALL = 32 };
static void *small[STACKS];

__attribute__((noinline)) static void allocate(int level, unsigned path, void **to) {
    if (level == LEVELS)
        *to = malloc(SMALL);
    else if (path >> level & 1)
        allocate(level + 1, path, to);
    else
        allocate(level + 1, path, to);
    __asm__ volatile("" ::: "memory"); /* no tail call */
}

static void allocate_small(void) {
    for (unsigned i = 0; i < STACKS; i++) allocate(0, i, &small[i]);
}

#endif
