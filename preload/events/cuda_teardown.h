/* cuda_teardown.h — calls that end many blocks at once: of graphs, contexts, devices that are reset.
 * In: such calls, before and after. Out: blocks that ended leave the ledger's table. It must not remove blocks that
 * came after the call began. */
#ifndef MEMSTOW_CUDA_TEARDOWN_H
#define MEMSTOW_CUDA_TEARDOWN_H

#include "preload/events/cuda_events.h"

#pragma GCC visibility push(hidden)

/* Before the call: everything of a graph or context is about to end, or everything of a device's primary context. */
void cuda_teardown_begins(struct cuda_call *call, enum cuda_ending what, cuda_handle handle);
void cuda_teardown_reset(struct cuda_call *call, uint32_t device);
/* After a call that succeeded: the blocks that were there before it have ended. */
void cuda_teardown_ended(struct cuda_call *call);
/* Before and after a release of the primary context. It may be the last release. */
void cuda_teardown_release(struct cuda_call *call, uint32_t device);
void cuda_teardown_primary_released(struct cuda_call *call);

/* After a node was added to a graph: memory of the node, or a graph that ends with this one from now on. */
void cuda_teardown_node(const struct cuda_call *call, const struct cuda_node *node, cuda_handle graph);

/* number: gives the call the number of its teardown. count: how many have begun so far. any: a teardown is in
 * progress, so one of its blocks may already be another thread's. over: a teardown is over, successful or not. */
void cuda_teardown_number(struct cuda_call *call);
uint32_t cuda_teardown_count(void);
bool cuda_teardown_any(void);
void cuda_teardown_over(const struct cuda_call *call);

#pragma GCC visibility pop

#endif
