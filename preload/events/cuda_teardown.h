/* cuda_teardown.h — calls that end many blocks at once: those of a graph, of a context, or of a device that is reset.
 * In: such calls, before and after. Out: blocks that ended leave the ledger's table. Blocks that came after the call
 * began must stay in the table. */
#ifndef MEMSTOW_CUDA_TEARDOWN_H
#define MEMSTOW_CUDA_TEARDOWN_H

#include "preload/events/cuda_events.h"

#pragma GCC visibility push(hidden)

/* Call one of these before the driver's call. cuda_teardown_begins: all blocks of a graph or context are about to end.
 * cuda_teardown_reset: all blocks of a device's primary context are about to end. */
void cuda_teardown_begins(struct cuda_call *call, enum cuda_ending what, cuda_handle handle);
void cuda_teardown_reset(struct cuda_call *call, uint32_t device);
/* After a call that succeeded: the blocks that were there before the call have ended. */
void cuda_teardown_ended(struct cuda_call *call);
/* Call cuda_teardown_release before the program releases the primary context, and cuda_teardown_primary_released after
 * the release has succeeded. If it was the last release, the context has ended. */
void cuda_teardown_release(struct cuda_call *call, uint32_t device);
void cuda_teardown_primary_released(struct cuda_call *call);

/* Call it after a node was added to `graph`. Notes the memory of an allocation node. If the node moves a child graph
 * into `graph`, the child's memory ends with `graph` from now on. */
void cuda_teardown_node(const struct cuda_call *call, const struct cuda_node *node, cuda_handle graph);

/* cuda_teardown_number gives the call the number of its teardown. cuda_teardown_count returns how many teardowns have
 * begun so far. cuda_teardown_any tells whether a teardown is in progress; if so, another thread may already have a new
 * block with the number of a block that ends. Call cuda_teardown_over when the driver's call has returned, successful
 * or not. */
void cuda_teardown_number(struct cuda_call *call);
uint32_t cuda_teardown_count(void);
bool cuda_teardown_any(void);
void cuda_teardown_over(const struct cuda_call *call);

#pragma GCC visibility pop

#endif
