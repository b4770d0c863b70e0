/* cuda_counts.h — how much CUDA memory was allocated and freed: by site and tag, kind and device.
 * In: blocks that come and go. Out: CUDA_SITE, CUDA_DEVICE and CUDA records of the ledger, sums for the owners'
 * figures. Any thread, at any time: CUDA's own calls take microseconds, so that counters here are shared and atomic. */
#ifndef MEMSTOW_CUDA_COUNTS_H
#define MEMSTOW_CUDA_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* The process uses CUDA: its section. Never NULL: where the ledger has no room, one that nobody sees. */
struct snap_cuda *cuda_counts_head(void);
/* The record of a device; NULL: no such device, or no room. */
struct snap_cuda_device *cuda_counts_device(uint32_t device);
bool cuda_counts_begun(void);

/* A block of this kind was allocated: the id of the record that has it, which belongs in the block. */
uint32_t cuda_counts_add(uint32_t site, uint32_t tag, enum snap_cuda_kind kind, uint32_t device, uint64_t bytes);
/* It is freed; blocks is 1, or 0 for what is part of another. */
void cuda_counts_remove(uint32_t id, uint64_t bytes, uint32_t blocks);
/* Counts so much of what is counted at `id` as the model's (0: nobody's) instead: at the returned id, which has one
 * user more. 0: no room, and nothing has changed. */
uint32_t cuda_counts_shift(uint32_t id, uint32_t model, uint64_t bytes, uint32_t blocks);
/* A block keeps the record no more, but what it counted stays: it was shifted. */
void cuda_counts_let_go(uint32_t id);
/* The model that the record is of; adoption not done. */
uint32_t cuda_counts_model(uint32_t id);

/* What was counted at the id: its site and tag. */
struct snap_cuda_site cuda_counts_at(uint32_t id);

/* Calls visit for each record in use. */
void cuda_counts_visit(void (*visit)(const struct snap_cuda_site *site, void *context), void *context);

#pragma GCC visibility pop

#endif
