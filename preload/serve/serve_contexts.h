/* serve_contexts.h — contexts of the program come and go.
 * In: contexts that were made, used or ended. Out: all moves wait for their work; memory that was served in a context
 * ends with it. Any thread. */
#ifndef MEMSTOW_SERVE_CONTEXTS_H
#define MEMSTOW_SERVE_CONTEXTS_H

#include "preload/cuda/cuda_device.h"

#pragma GCC visibility push(hidden)

/* The program works in this context. 0, or the driver's error: a device cannot be given access. */
int serve_contexts_note(const struct cuda_target *target);
/* As serve_contexts_note, for the thread's current context. The thread remembers that it was noted. */
void serve_contexts_note_present(const struct cuda_target *target);

/* made: work may run in this context. ended: memory served in it is gone, except memory in place of a pool; a context
 * that was reset goes on. */
void serve_contexts_made(cuda_handle context, uint32_t device);
void serve_contexts_ended(cuda_handle context, bool goes_on, uint64_t end); /* end: from vram_contexts_end_begins */

#pragma GCC visibility pop

#endif
