/* cuda_parts.h — parts of device blocks that belong to other owners than their blocks. For example, a segment of
 * PyTorch's allocator is one block, and has tensors of several models.
 * In: ranges that the program assigned (memstow_assign). Out: records of the parts in the table of blocks
 * (cuda_blocks.h). Each part is counted at the site of its block, under its own owner; the rest of the block stays with
 * the block's owner. One thread at a time assigns. */
#ifndef MEMSTOW_CUDA_PARTS_H
#define MEMSTOW_CUDA_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Assigns a range, which is a block or lies in a block, to the model (0: to nobody). Returns 0 or an error:
 * - -ENXIO: no block of device or pinned memory contains the range.
 * - -EBUSY: the block is off its device, or another thread was assigning for too long.
 * - -ENOMEM: there is no memory, and nothing has changed. */
int cuda_parts_assign(uint64_t start, uint64_t length, uint32_t model);

/* Writes the owners of a block and of its parts to `owners`: each owner once, and at most `capacity` owners. Returns
 * how many owners it wrote. */
uint32_t cuda_parts_owners(uint64_t block, uint32_t *owners, uint32_t capacity);

/* Call it when the block has left the table. Ends the block's parts, and returns their bytes. */
uint64_t cuda_parts_end(const struct snap_cuda_block *block);

#pragma GCC visibility pop

#endif
