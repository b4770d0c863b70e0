/* parts.h — parts of blocks: pieces that have another owner than the rest of the block (`memstow_assign`).
 * In: the parts, one by one, and blocks that are freed. Out: the site of each part. The mark of a block with parts has
 * the flag HEADER_PARTS, so other blocks are never looked up here. A lock, held for microseconds, admits one thread at
 * a time. */
#ifndef MEMSTOW_PARTS_H
#define MEMSTOW_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

struct part {
    uintptr_t block;
    uint64_t start, length; /* start: counted from the block's start */
    uint32_t site;
};

/* How counts move from site to site. `reserve` is called for each site whose count is to change, before `shift` changes
 * any count. `shift` moves the count of `bytes`. Both return false if there is no memory. */
struct parts_counts {
    bool (*reserve)(uint32_t site);
    bool (*shift)(uint32_t from, uint32_t to, uint64_t bytes);
};

/* Gives a range of a block to the site of `part`. Bytes that belong to an earlier part move from that part's site. All
 * other bytes move from `rest`, the site of the block. False: there is no memory for the part or for a count, or the
 * lock stayed taken. Then nothing has changed. */
bool parts_add(const struct part *part, uint32_t rest, const struct parts_counts *counts);

/* Removes the parts of a block, and moves their counts to `rest`. False: as in parts_add. */
bool parts_join(uintptr_t block, uint32_t rest, const struct parts_counts *counts);

/* For a block that is about to be freed: takes its parts out, and calls visit for each. */
void parts_take(uintptr_t block, void (*visit)(const struct part *part, void *context), void *context);

/* Calls visit for all bytes of the block, in order: each part with its site, and the bytes between parts with the site
 * of the block. visit runs without the lock, so it may take its time, and parts may change meanwhile. If the lock stays
 * taken, the rest of the block is not visited. */
typedef void parts_visit(uint32_t site, uintptr_t start, uint64_t length, void *context);
void parts_each(const struct snap_large *block, parts_visit *visit, void *context);

#pragma GCC visibility pop

#endif
