/* assign.h — gives memory that exists to an owner. In: a range, as the program says. Out: counts, moved from the old
 * site to the same stack, node and run with another model. The caller of the ABI promises that nobody frees the block
 * meanwhile. */
#ifndef MEMSTOW_ASSIGN_H
#define MEMSTOW_ASSIGN_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* model: 0 for nobody's. 0, -ENXIO: it is no memory of the program's that could be found; -ENOMEM, -EBUSY: then nothing
 * has changed. May wait for seconds while the ledger grows on a slow disk. */
int assign_range(uintptr_t start, uint64_t length, uint32_t model);

/* A block with parts is freed, and will be counted out whole at its site: parts are where they were counted. In this
 * order nobody is ever seen to have less than nothing. */
void assign_end_parts(uintptr_t block, uint32_t site);

#pragma GCC visibility pop

#endif
