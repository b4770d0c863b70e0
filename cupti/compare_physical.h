/* compare_physical.h — compares physical memory, its mappings and reserved addresses in the ledger with those that
 * follow from the calls that CUPTI reports.
 * In: the blocks in the table of vmm.h, and the blocks of the ledger. Out: as in compare.h. */
#ifndef MEMSTOW_CUPTI_COMPARE_PHYSICAL_H
#define MEMSTOW_CUPTI_COMPARE_PHYSICAL_H

#include "cupti/compare.h"

#pragma GCC visibility push(hidden)

/* Adds to the sums, and appends differences to the list, which has `named` entries. Returns how many entries it has
 * now. */
size_t compare_physical(const struct cupti_sections *sections, compare_blocks *blocks, size_t named, bool again);

#pragma GCC visibility pop

#endif
