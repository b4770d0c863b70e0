/* origin_stacks.h — the call stacks that opened descriptors, started threads, and mapped shared memory.
 * In: records of a ledger, with sites. Out: the image's origins, with stacks. */
#ifndef MEMSTOW_ORIGIN_STACKS_H
#define MEMSTOW_ORIGIN_STACKS_H

#include "tools/reader/reader.h"

/* Adds the origins to the image. Call it once, before the stacks are read. Returns 0 or -1. */
int origin_stacks_keep(struct reader *reader, const struct snap_origin *origins, size_t count,
                       const struct snap_mapping *mappings, size_t mapping_count);

/* When the call stacks are read, they get new numbers. Only the totals of the image are given these numbers. So call
 * origin_stacks_lend before the stacks are read: it adds a total for each origin, and returns 0 or -1. Call
 * origin_stacks_take_back afterwards: it removes these totals, and keeps their stacks. Other parts lend totals in the
 * same way. The part that lends last must take its totals back first. */
int origin_stacks_lend(struct reader *reader);
void origin_stacks_take_back(struct reader *reader);

#endif
