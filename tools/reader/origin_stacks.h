/* origin_stacks.h — the stacks where descriptors were opened, threads started, and shared memory mapped.
 * In: records of a ledger, with sites. Out: the image's origins, with nodes, like totals. A site without allocations
 * has no total, so a total is lent to it while the stacks are read. */
#ifndef MEMSTOW_ORIGIN_STACKS_H
#define MEMSTOW_ORIGIN_STACKS_H

#include "tools/reader/reader.h"

/* Adds the origins to the image. Call it once, before the sites are read. Returns 0 or -1. */
int origin_stacks_keep(struct reader *reader, const struct snap_origin *origins, size_t count,
                       const struct snap_mapping *mappings, size_t mapping_count);

/* Call lend before the stacks are read (0 or -1), and take_back after that. The last to lend is the first to take
 * back. */
int origin_stacks_lend(struct reader *reader);
void origin_stacks_take_back(struct reader *reader);

#endif
