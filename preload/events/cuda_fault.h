/* cuda_fault.h — when the driver reports an illegal address (error 700), names memory that a kernel may have used.
 * In: device memory that is freed; calls that return the error. Out: lines in the trace, records in the ledger, one
 * line on stderr. The output names two kinds of memory: the blocks that were freed most recently, with the time; and
 * the memory that was off its device when the error came, with the time and the trigger (trigger.h) of its move. Any
 * thread may call these functions. They must not call CUDA, because the context is broken. */
#ifndef MEMSTOW_CUDA_FAULT_H
#define MEMSTOW_CUDA_FAULT_H

#include "preload/events/cuda_events.h"

#pragma GCC visibility push(hidden)

/* Before the call frees this block: notes it in the ring of frees. */
void cuda_fault_freed(const struct cuda_call *call, const struct snap_cuda_block *block);
/* Call it when a call of the entry `name` has returned the error. Until a context ends, further errors do not count:
 * all calls in a broken context return the error. At most four faults of a process count. */
void cuda_fault_seen(const struct cuda_call *call, const char *name);
/* Call it when the program asks the function `name` for the name or text of `error`. If `error` is 700, and no call was
 * seen to return it, it counts as returned by a call that memstow does not hook. */
void cuda_fault_asked(const struct cuda_call *call, const char *name, int error);

#pragma GCC visibility pop

#endif
