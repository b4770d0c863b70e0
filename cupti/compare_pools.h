/* compare_pools.h — compares the pools in CUPTI's records, and the memory from them, with those in the ledger.
 * In: the pools of pools.h, and the pools and blocks of the ledger. Out: as in compare.h. */
#ifndef MEMSTOW_CUPTI_COMPARE_POOLS_H
#define MEMSTOW_CUPTI_COMPARE_POOLS_H

#include "cupti/compare.h"

#pragma GCC visibility push(hidden)

/* Appends differences to sections->differences, which has `named` entries. Returns the new number of entries. */
size_t compare_pools(const struct cupti_sections *sections, compare_blocks *blocks, size_t named, bool again);

#pragma GCC visibility pop

#endif
