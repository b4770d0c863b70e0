/* cupti.h — the interface by which libmemstow_cupti.so reaches the ledger of libmemstow.so, to compare CUPTI's records
 * with it. If libmemstow_cupti.so has a ledger of its own, it uses the same interface.
 * In: libmemstow_cupti.so's request for sections in the ledger. Out: these sections, and the ledger's blocks of CUDA
 * memory. Both libraries come from one build: whoever changes this interface also changes CUPTI_SEAM. */
#ifndef MEMSTOW_CUPTI_H
#define MEMSTOW_CUPTI_H

#include "preload/cuda/cuda_blocks.h"
#include "preload/shared/snapshot.h"

enum { CUPTI_SEAM = 2 };

struct cupti_sections {
    struct snap_cupti *head;
    struct snap_cupti_block *differences; /* SNAP_CUPTI_BLOCKS of them */
};

/* Makes the sections in the present ledger. Call it once in a process. `seam`: the caller's CUPTI_SEAM. Returns 0, or
 * -EINVAL if `seam` is not ours or there is no ledger, or -ENOMEM if there is no memory. */
int memstow_cupti_begin(uint32_t seam, struct cupti_sections *out);

/* Calls visit for a copy of each block that CUPTI can have in its records, in no order. In the space CUDA_ADDRESS these
 * are device, pool, managed and pinned memory. In CUDA_POOL they are pools that the program made. In CUDA_PHYSICAL,
 * CUDA_MAPPING and CUDA_RANGE they are physical memory, its mappings and reserved addresses, including the memory from
 * which memstow serves. */
typedef void cupti_visit(enum cuda_space space, const struct snap_cuda_block *block, void *context);
void memstow_cupti_blocks(cupti_visit *visit, void *context);

#endif
