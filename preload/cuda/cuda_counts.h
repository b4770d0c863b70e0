/* cuda_counts.h — how much CUDA memory was allocated and freed: by site and tag, kind and device.
 * In: blocks that come and go. Out: CUDA_SITE, CUDA_DEVICE and CUDA records of the ledger, sums for the figures of
 * owners. Any thread may call, at any time. Counters are shared and atomic, which costs little, because CUDA's own
 * calls take microseconds. */
#ifndef MEMSTOW_CUDA_COUNTS_H
#define MEMSTOW_CUDA_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Returns the sums of the process. The first call makes the section of the sums. From then on, the process counts as a
 * user of CUDA. If the ledger cannot grow, the sums are outside of the ledger, and no reader sees them. The result is
 * never NULL. */
struct snap_cuda *cuda_counts_head(void);
/* Returns the record of a device, or NULL if there is no such device or no memory for the record. */
struct snap_cuda_device *cuda_counts_device(uint32_t device);
/* Whether the process uses CUDA. */
bool cuda_counts_begun(void);

/* Counts a new block. Returns the id of its record. The caller stores the id in the block (`count`). */
uint32_t cuda_counts_add(uint32_t site, uint32_t tag, enum snap_cuda_kind kind, uint32_t device, uint64_t bytes);
/* Counts a free in the record `id`, which the block or part no longer uses. `blocks`: 1 for a block, 0 for a part. */
void cuda_counts_remove(uint32_t id, uint64_t bytes, uint32_t blocks);
/* Moves `bytes` and `blocks` from the record `id` to another record, which differs only in the model of its tag: it has
 * `model` (0: nobody). Counts one more user in the other record, and returns its id. If the other record cannot be
 * made, changes nothing and returns 0. */
uint32_t cuda_counts_shift(uint32_t id, uint32_t model, uint64_t bytes, uint32_t blocks);
/* Ends the use of a record by one block or part. The record's counters stay as they are. */
void cuda_counts_let_go(uint32_t id);
/* The model in the record's tag, even if another owner has adopted the model since. */
uint32_t cuda_counts_model(uint32_t id);

struct cuda_made {
    uint32_t site, tag;
};
/* The site and tag of a record, by its id. */
struct cuda_made cuda_counts_at(uint32_t id);

/* Calls visit for each record in use. */
void cuda_counts_visit(void (*visit)(const struct snap_cuda_site *site, void *context), void *context);

#pragma GCC visibility pop

#endif
