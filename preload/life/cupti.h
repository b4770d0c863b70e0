/* cupti.h — the seam between the ledger of libmemstow.so and libmemstow_cupti.so, which listens to CUPTI and compares;
 * and that between the latter and a ledger of its own. In: the other library's wish for a place in the ledger. Out:
 * that place, and the ledger's blocks of CUDA memory. Both libraries are of one build: the numbers here change
 * together. */
#ifndef MEMSTOW_CUPTI_H
#define MEMSTOW_CUPTI_H

#include "preload/cuda/cuda_blocks.h"
#include "preload/shared/snapshot.h"

enum { CUPTI_SEAM = 2 };

struct cupti_place {
    struct snap_cupti *head;
    struct snap_cupti_block *differences; /* SNAP_CUPTI_BLOCKS of them */
};

/* The sections of the present ledger, made once for a process. 0; -EINVAL: another seam, or none is kept; -ENOMEM: no
 * room. */
int memstow_cupti_begin(uint32_t seam, struct cupti_place *out);

/* Calls visit for a copy of each block that CUPTI can know, too, in no order: device, pool, managed and pinned memory,
 * in CUDA_ADDRESS; pools that the program has made; physical memory, in CUDA_PHYSICAL, its mappings and reserved
 * addresses, also those from which memstow serves. */
typedef void cupti_visit(enum cuda_space space, const struct snap_cuda_block *block, void *context);
void memstow_cupti_blocks(cupti_visit *visit, void *context);

#endif
