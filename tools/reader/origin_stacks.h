/* origin_stacks.h — the stacks that descriptors were opened at, threads started, and shared memory mapped.
 * In: records of a ledger, with sites. Out: the image's origins, with nodes, as totals have them. A site at which
 * nothing was allocated has no total, and so is lent one while stacks are read. */
#ifndef MEMSTOW_ORIGIN_STACKS_H
#define MEMSTOW_ORIGIN_STACKS_H

#include "tools/reader/reader.h"

/* Once, with what was read before the sites are: 0 or -1. */
int origin_stacks_keep(struct reader *reader, const struct snap_birth *origins, size_t count,
                       const struct snap_mapping *mappings, size_t mapping_count);

/* Before the stacks are read, 0 or -1; and after. What is lent last is taken back first. */
int origin_stacks_lend(struct reader *reader);
void origin_stacks_take_back(struct reader *reader);

#endif
