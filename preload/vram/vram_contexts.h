/* vram_contexts.h — the contexts in which work may run, and their ends.
 * In: contexts that the program uses or ends. Out: a list of the contexts that exist. */
#ifndef MEMSTOW_VRAM_CONTEXTS_H
#define MEMSTOW_VRAM_CONTEXTS_H

#include "preload/vram/vram_quiet.h"

#pragma GCC visibility push(hidden)

/* Notes a context in which work may run. Every move waits for its work first. Call it even if nothing is served. */
void vram_contexts_note(cuda_handle context);
/* All these contexts. *missing: there were more. */
uint32_t vram_contexts_all(cuda_handle to[VRAM_CONTEXTS], bool *missing);
/* The device of a context, if anything was served in it; false: nothing was. */
bool vram_contexts_device(cuda_handle context, uint32_t *device);
/* Before the driver ends a context: the number of this end. */
uint64_t vram_contexts_end_begins(void);
/* The context has ended. Blocks that were served in it before the end began end with it; later blocks belong to the
 * next context with that address. Blocks in place of a pool belong to no context, so they go to `heir`, which may be
 * the same context after a reset. NULL: there is no heir, and they end, too. */
void vram_contexts_ended(cuda_handle context, cuda_handle heir, uint64_t end);

#pragma GCC visibility pop

#endif
