/* compare.h — compares the memory that CUPTI's records list with the memory in the ledger.
 * In: the blocks of seen.h and of the ledger. Out: sums and differences, in their sections of the ledger. */
#ifndef MEMSTOW_CUPTI_COMPARE_H
#define MEMSTOW_CUPTI_COMPARE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/life/cupti.h"

#pragma GCC visibility push(hidden)

/* A function that calls visit for each block of the ledger. It is memstow_cupti_blocks of the library that has the
 * ledger. */
typedef void compare_blocks(cupti_visit *visit, void *context);

/* Compares CUPTI's blocks, physical memory and pools with those of the ledger. Blocks of the ledger that are younger
 * than `until_ns` may have no record yet, and are left out. Other threads allocate and free meanwhile, so a difference
 * may be gone a moment later. If there are differences, get CUPTI's records once more and call this with `again`. With
 * `again`, a different size, or a block that only CUPTI has, counts only if an earlier comparison found it, too.
 * Returns the number of differences. */
uint64_t compare(const struct cupti_sections *sections, compare_blocks *blocks, uint64_t until_ns, bool again);

#pragma GCC visibility pop

#endif
