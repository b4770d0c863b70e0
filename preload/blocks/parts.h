/* parts.h — parts of blocks that have another owner than the rest: `memstow_assign` gave them away. In: part by part,
 * and the end of a block. Out: the site of each part. Blocks that have parts carry a mark (HEADER_PARTS), so no other
 * block is ever looked for here. One thread at a time; a lock that is held for microseconds. */
#ifndef MEMSTOW_PARTS_H
#define MEMSTOW_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct part {
    uintptr_t block;
    uint64_t start, length; /* start: from the block's */
    uint32_t site;
};

/* How counts move: `room` is asked for each site that is to change, before anything does. */
struct parts_counts {
    bool (*room)(uint32_t site);
    bool (*shift)(uint32_t from, uint32_t to, uint64_t bytes);
};

/* Gives a range to a new site. Parts of it that were given away before are shifted from their site; the rest of it is
 * taken from `rest`, the site of the block. False: no memory, no room, or the lock is not free; then nothing has
 * changed. */
bool parts_add(const struct part *part, uint32_t rest, const struct parts_counts *counts);

/* Makes the block one whole again: its parts go, and their counts are shifted to `rest`. False as above. */
bool parts_join(uintptr_t block, uint32_t rest, const struct parts_counts *counts);

/* The block ends: takes its parts out, and calls visit for each. */
void parts_take(uintptr_t block, void (*visit)(const struct part *part, void *context), void *context);

/* Calls visit for the block's bytes, in order: each part with its site, and the bytes between them with `rest`. Visit
 * must not call this room. It visits nothing when the lock is not free. */
typedef void parts_visit(uint32_t site, uintptr_t start, uint64_t length, void *context);
void parts_each(uintptr_t block, uint64_t size, uint32_t rest, parts_visit *visit, void *context);

#pragma GCC visibility pop

#endif
