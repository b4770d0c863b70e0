/* changes.h — finds out what changed in counters that only grow.
 * In: their words, as they are now. Out: sums that differ from the sums of any earlier time, if a word differs. So a
 * change is found without a copy of the words. */
#ifndef MEMSTOW_TOP_CHANGES_H
#define MEMSTOW_TOP_CHANGES_H

#include "preload/shared/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of the words of a chunk. */
struct changes_sum {
    uint64_t low, high;
};
/* Two sums, because one word holds two numbers that grow. `high` grows by each free, and once when a word becomes wide;
 * if it stays, all that can happen is that allocations are counted, and `low` grows by each. */
struct changes_sum changes_of_chunk(const uint64_t words[SNAP_CHUNK_SITES]);
bool changes_same(struct changes_sum a, struct changes_sum b);

/* Of wide counters: each of their numbers only grows, so their sum does. */
uint64_t changes_of_wide(const uint64_t *words, size_t count);

#endif
