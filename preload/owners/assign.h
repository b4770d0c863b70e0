/* assign.h — gives an owner memory that was allocated before (memstow_assign).
 * In: a range, from the program. Out: the range no longer counts at its site, but at the site of the same stack, node
 * and run under another model. The program promises that nobody frees the block meanwhile. */
#ifndef MEMSTOW_ASSIGN_H
#define MEMSTOW_ASSIGN_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Gives a range to a model (0: to nobody). Returns 0, or -ENXIO if no memory of the program was found there. If it
 * returns -ENOMEM or -EBUSY, nothing has changed. It may wait for seconds while the ledger grows on a slow disk. */
int assign_range(uintptr_t start, uint64_t length, uint32_t model);

/* Call it when a block is about to be freed, if other owners have parts of it. The whole block will then be counted as
 * freed at `site`, its own site. So this function first counts the parts back to that site. In this order no owner ever
 * seems to have less than nothing. */
void assign_end_parts(uintptr_t block, uint32_t site);

#pragma GCC visibility pop

#endif
