/* cupti.h — the seam between the ledger of libmemstow.so and libmemstow_cupti.so, which listens to CUPTI and compares;
 * and that between the latter and a ledger of its own. In: the other library's wish for a place in the ledger. Out:
 * that place, and the ledger's blocks of CUDA memory. Both libraries are of one build: the numbers here change
 * together. */
#ifndef MEMSTOW_CUPTI_H
#define MEMSTOW_CUPTI_H

#include "snapshot.h"

enum { CUPTI_SEAM = 1 };

struct cupti_place {
    struct snap_cupti *head;
    struct snap_cupti_block *differences; /* SNAP_CUPTI_BLOCKS of them */
};

/* The sections of the present ledger, made once for a process. 0; -EINVAL: another seam, or none is kept; -ENOMEM: no
 * room. */
int memstow_cupti_begin(uint32_t seam, struct cupti_place *out);

/* Calls visit for a copy of each block of device, pool, managed and pinned memory that is there, in no order. */
typedef void cupti_visit(const struct snap_cuda_block *block, void *context);
void memstow_cupti_blocks(cupti_visit *visit, void *context);

#endif
