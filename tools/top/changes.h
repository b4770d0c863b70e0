/* changes.h — finds out whether counters that only grow have changed.
 * In: the words of the counters, as they are now. Out: sums of the words. If a word has changed, the sums differ from
 * those of any earlier time. So a change is found without a copy of the words. */
#ifndef MEMSTOW_TOP_CHANGES_H
#define MEMSTOW_TOP_CHANGES_H

#include "preload/shared/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The sums of the words of a chunk. */
struct changes_sum {
    uint64_t low, high;
};
/* Two sums, because one word holds two numbers that grow. `high` grows with each free, and when a word becomes wide
 * (its counter moves to another section). If `high` is the same, only allocations can have been counted, and `low`
 * grows with each of them. */
struct changes_sum changes_of_chunk(const uint64_t words[SNAP_CHUNK_SITES]);
bool changes_same(struct changes_sum a, struct changes_sum b);

/* The sum of wide counters. It grows whenever one of them changes, because each of their numbers only grows. */
uint64_t changes_of_wide(const uint64_t *words, size_t count);

#endif
