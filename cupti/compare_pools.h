/* compare_pools.h — CUPTI's pools beside the ledger's, and what is given out of them.
 * In: the pools and blocks of both. Out: as compare.h. */
#ifndef MEMSTOW_CUPTI_COMPARE_POOLS_H
#define MEMSTOW_CUPTI_COMPARE_POOLS_H

#include "cupti/compare.h"

#pragma GCC visibility push(hidden)

/* Names differences behind the first `named`: returns how many are named then. */
size_t compare_pools(const struct cupti_place *place, compare_blocks *blocks, size_t named, bool again);

#pragma GCC visibility pop

#endif
