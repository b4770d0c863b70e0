/* cuda_parts.h — parts of a device's blocks that are other owners': PyTorch's segments hold tensors of several models.
 * In: ranges assigned through the ABI. Out: entries of the table in their own right, each counted at the site of its
 * block under its own owner; the block has what is left. One thread at a time assigns. */
#ifndef MEMSTOW_CUDA_PARTS_H
#define MEMSTOW_CUDA_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* The range is the model's (0: nobody's) from now on: a block, or part of one. 0, or -ENXIO: it is in no block of
 * device memory; -EBUSY: it is out of the device; -ENOMEM. */
int cuda_parts_assign(uint64_t start, uint64_t length, uint32_t model);

/* Whose the block and its parts are, each once, at most `room` of them. How many. */
uint32_t cuda_parts_owners(uint64_t block, uint32_t *owners, uint32_t room);

/* The block has been taken out of the table: its parts end, too. Their bytes. */
uint64_t cuda_parts_end(const struct snap_cuda_block *block);

#pragma GCC visibility pop

#endif
