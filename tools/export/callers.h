/* callers.h — follows call stacks from their innermost frames outwards, as massif shows them.
 * In: stacks with their bytes. Out: the callers of a function, with their bytes. Callers are looked up on request
 * only. */
#ifndef MEMSTOW_CALLERS_H
#define MEMSTOW_CALLERS_H

#include "tools/image/image.h"
#include "tools/symbols/symbols.h"

/* A stack, and the frame to which it was followed outwards. */
struct caller {
    uint64_t bytes;
    uint32_t node; /* the frame's node; 0: the stack has no further frames */
    /* position: 1 + the frame's position in the node's segment; level: which of the functions inlined in the frame */
    uint32_t position, level;
    struct symbol_line line; /* the line of this frame, or of another frame whose line has the same text */
};

struct callers {
    const struct image *image;
    struct symbols *symbols;
    bool (*skips)(const void *context, uint32_t frame); /* true for frames that are left out */
    const void *skips_context;
};

/* Callers whose lines have the same text. They are neighbours in the list of callers. */
struct caller_group {
    struct caller *first;
    size_t count;
    uint64_t bytes;
    bool ended; /* these stacks have no further frames */
};

/* Sets a caller to the inner end of a stack, before its innermost frame: the first step goes to that frame. */
void caller_begin(struct caller *caller, uint32_t stack, uint64_t bytes);
/* Moves each of the `count` callers in `list` one function outwards, and sorts them into groups. Returns an array of
 * the groups, the largest first; NULL: no memory. The array must be freed. *groups gets the number of groups. */
struct caller_group *callers_step(const struct callers *self, struct caller *list, size_t count, size_t *groups);

#endif
