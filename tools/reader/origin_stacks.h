/* origin_stacks.h — the stacks where descriptors were opened, threads started, and shared memory mapped.
 * In: records of a ledger, with sites. Out: the image's origins. Their stacks are nodes, like those of totals. Only
 * totals get nodes when the stacks are read, and a site without allocations has no total. So origins are lent a total
 * each for that time. */
#ifndef MEMSTOW_ORIGIN_STACKS_H
#define MEMSTOW_ORIGIN_STACKS_H

#include "tools/reader/reader.h"

/* Adds the origins to the image. Call it once, before the stacks are read. Returns 0 or -1. */
int origin_stacks_keep(struct reader *reader, const struct snap_origin *origins, size_t count,
                       const struct snap_mapping *mappings, size_t mapping_count);

/* Call lend before the stacks are read (it returns 0 or -1), and take_back after that. If several files lend totals,
 * the last to lend is the first to take back. */
int origin_stacks_lend(struct reader *reader);
void origin_stacks_take_back(struct reader *reader);

#endif
