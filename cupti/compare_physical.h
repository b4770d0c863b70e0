/* compare_physical.h — physical memory, its mappings and reserved addresses: CUPTI's calls beside the ledger.
 * In: the blocks of both. Out: as compare.h. */
#ifndef MEMSTOW_CUPTI_COMPARE_PHYSICAL_H
#define MEMSTOW_CUPTI_COMPARE_PHYSICAL_H

#include "cupti/compare.h"

#pragma GCC visibility push(hidden)

/* Adds to the sums, and names differences behind the first `named`: returns how many are named then. */
size_t compare_physical(const struct cupti_place *place, compare_blocks *blocks, size_t named, bool again);

#pragma GCC visibility pop

#endif
