/* compare.h — CUPTI's view of the memory beside the ledger's.
 * In: seen.h's blocks and the ledger's. Out: sums and differences, in their place in the ledger. */
#ifndef MEMSTOW_CUPTI_COMPARE_H
#define MEMSTOW_CUPTI_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/life/cupti.h"

#pragma GCC visibility push(hidden)

/* Goes through the ledger's blocks: memstow_cupti_blocks. */
typedef void compare_blocks(cupti_visit *visit, void *context);

/* Of the ledger's blocks those count that are not younger than `until_ns`. Other threads may free and allocate
 * meanwhile: what differs then may be only on its way. So where there are differences, CUPTI's records are to be asked
 * for again, and the second comparison (`again`) has what differed both times. Returns how many differences there are.
 */
uint64_t compare(const struct cupti_place *place, compare_blocks *blocks, uint64_t until_ns, bool again);

#pragma GCC visibility pop

#endif
