/* vmm.h — physical memory and its addresses by the calls that CUPTI tells of: of these it has no records.
 * In: the beginning and the end of each call, on the thread that makes it. Out: what there is, in the table of
 * cuda_blocks.h, which is the ledger's where this library has it. Any thread. */
#ifndef MEMSTOW_CUPTI_VMM_H
#define MEMSTOW_CUPTI_VMM_H

#include <stdbool.h>

#include "preload/cuda/cuda_blocks.h"
#include "preload/stacks/stack.h"
#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

/* `id` is one of CUPTI_CALLS. The caller is CUPTI. */
void vmm_call(uint32_t id, const struct cupti_call *call, struct caller caller);

/* Whether what comes is counted, with the call stack that it comes from: in this library's ledger. */
void vmm_count(bool counts);

#pragma GCC visibility pop

#endif
