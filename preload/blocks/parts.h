/* parts.h — parts of blocks that are somebody else's than the rest: what `memstow_assign` gave away of a block.
 * In: part by part, and the end of a block. Out: what each part was counted at. Blocks that have parts carry a mark
 * (HEADER_PARTS), so that no other is ever looked for here. One thread at a time; a lock that is held for microseconds.
 */
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

/* What of the range has been given away before is taken back first: it is shifted from its site to the new one's, and
 * all that is new from `rest`, the site of the block. False: no memory, no room, or the lock is not to be had; then
 * nothing has changed. */
bool parts_add(const struct part *part, uint32_t rest, const struct parts_counts *counts);

/* The block is one whole again: its parts go, and what was counted for them is shifted to `rest`. False as above. */
bool parts_join(uintptr_t block, uint32_t rest, const struct parts_counts *counts);

/* The block ends: takes its parts out, and calls visit for each. */
void parts_take(uintptr_t block, void (*visit)(const struct part *part, void *context), void *context);

/* Calls visit for the block's bytes, in order: each part with its site, and what lies between them with `rest`. It must
 * not come back here. Nothing is visited when the lock is not to be had. */
typedef void parts_visit(uint32_t site, uintptr_t start, uint64_t length, void *context);
void parts_each(uintptr_t block, uint64_t size, uint32_t rest, parts_visit *visit, void *context);

#pragma GCC visibility pop

#endif
