/* cuda_teardown.h — what ends much at once: graphs, contexts, devices that are reset.
 * In: calls that end one, before and after. Out: blocks that went with it leave the ledger's table. It must not take
 * what came after the call began. */
#ifndef MEMSTOW_CUDA_TEARDOWN_H
#define MEMSTOW_CUDA_TEARDOWN_H

#include "preload/events/cuda_events.h"

#pragma GCC visibility push(hidden)

/* Before: all that is a graph's or a context's is about to end; of a device, what is its primary context's is. After:
 * what was there by then has ended. */
void cuda_teardown_begins(struct cuda_call *call, enum cuda_ending what, cuda_handle handle);
void cuda_teardown_reset(struct cuda_call *call, uint32_t device);
void cuda_teardown_ended(struct cuda_call *call);
/* Before a release of the primary context, which may be the last; after. */
void cuda_teardown_release(struct cuda_call *call, uint32_t device);
void cuda_teardown_primary_released(struct cuda_call *call);

/* Gives the call the number of its teardown. How many have begun so far. Whether one is under way: a block in it may be
 * another thread's already. One is over, with success or not. */
void cuda_teardown_number(struct cuda_call *call);
uint32_t cuda_teardown_count(void);
bool cuda_teardown_any(void);
void cuda_teardown_over(void);

#pragma GCC visibility pop

#endif
