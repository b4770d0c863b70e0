/* compare_physical.h — compares the ledger with the calls that CUPTI reports: physical memory, its mappings, and
 * reserved addresses.
 * In: the blocks in the table of vmm.h, and the blocks of the ledger. Out: as in compare.h. */
#ifndef MEMSTOW_CUPTI_COMPARE_PHYSICAL_H
#define MEMSTOW_CUPTI_COMPARE_PHYSICAL_H

#include "cupti/compare.h"

#pragma GCC visibility push(hidden)

/* Adds to the sums in sections->head, and appends differences to sections->differences. `named` is the number of
 * entries that are there before. Returns the new number of entries. */
size_t compare_physical(const struct cupti_sections *sections, compare_blocks *blocks, size_t named, bool again);

#pragma GCC visibility pop

#endif
