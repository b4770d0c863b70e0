/* vmm.h — lists physical memory and its addresses, from calls that CUPTI reports, because CUPTI has no records of such
 * memory.
 * In: the beginning and the end of each call, on its thread. Out: the memory that exists, in the table of
 * cuda_blocks.h. If this library has the ledger, that table is in the ledger. Any thread may call. */
#ifndef MEMSTOW_CUPTI_VMM_H
#define MEMSTOW_CUPTI_VMM_H

#include <stdbool.h>

#include "preload/cuda/cuda_blocks.h"
#include "preload/stacks/stack.h"
#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

/* Notes the beginning or the end of a call. `id` is one of CUPTI_CALLS. `caller`: the return address into CUPTI, which
 * called our callback; the call stack begins there. */
void vmm_call(uint32_t id, const struct cupti_call *call, struct caller caller);

/* Sets whether new memory is counted in this library's ledger, with its call stack. */
void vmm_count(bool does);

#pragma GCC visibility pop

#endif
