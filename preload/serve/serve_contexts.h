/* serve_contexts.h — notes the program's CUDA contexts, which come and go.
 * In: contexts that were made, used or ended. Out: a move off a device waits for the work in these contexts. Memory
 * that was served in a context ends with the context. But memory that memstow served in place of a pool goes to the
 * context that lives on: the same context after a reset, or the device's primary context. If no context lives on, this
 * memory ends, too. Any thread may call. */
#ifndef MEMSTOW_SERVE_CONTEXTS_H
#define MEMSTOW_SERVE_CONTEXTS_H

#include "preload/cuda/cuda_device.h"

#pragma GCC visibility push(hidden)

/* Notes that the program works in this context. Returns 0, or the driver's error if a device cannot be given access to
 * served memory. */
int serve_contexts_note(const struct cuda_target *target);
/* As serve_contexts_note, for the thread's current context. Does nothing if the thread noted this context last, and no
 * context has ended since. */
void serve_contexts_note_present(const struct cuda_target *target);

/* serve_contexts_made notes that work may run in this context from now on. serve_contexts_ended notes that the
 * memory served in this context is gone, except memory that was served in place of memory from a pool. goes_on: the
 * context was only reset, and the program can still use the context. */
void serve_contexts_made(cuda_handle context, uint32_t device);
void serve_contexts_ended(cuda_handle context, bool goes_on, uint64_t end); /* end: from vram_contexts_end_begins */

#pragma GCC visibility pop

#endif
