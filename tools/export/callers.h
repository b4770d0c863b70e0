/* callers.h — call stacks from their innermost frames outwards: what calls what, as massif shows it.
 * In: stacks with their bytes. Out: for a place in the tree the callers of it, with their bytes; only those that are
 * asked for are looked up. */
#ifndef MEMSTOW_CALLERS_H
#define MEMSTOW_CALLERS_H

#include "tools/image/image.h"
#include "tools/symbols/symbols.h"

/* A stack, and how far out it is followed. */
struct caller {
    uint64_t bytes;
    uint32_t node; /* 0: it has no further frames */
    /* 1 + the frame's position in the node's segment; its inlined function */
    uint32_t position, level;
    struct symbol_line line; /* the line that it counts as */
};

struct callers {
    const struct image *image;
    struct symbols *symbols;
    bool (*skips)(const void *context, uint32_t frame); /* true for frames that are left out */
    const void *skips_context;
};

/* Callers with the same text: a part of the list. */
struct caller_group {
    struct caller *first;
    size_t count;
    uint64_t bytes;
    bool ended; /* these stacks have no further frames */
};

/* Puts a caller in front of the innermost frame of its stack. */
void caller_begin(struct caller *caller, uint32_t stack, uint64_t bytes);
/* Moves each of `count` callers one frame outwards, and sorts them into groups, the largest first. NULL: no memory. */
struct caller_group *callers_step(const struct callers *self, struct caller *list, size_t count, size_t *groups);

#endif
