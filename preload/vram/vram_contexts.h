/* vram_contexts.h — the contexts in which work may run, and the ends of these contexts.
 * In: contexts that the program uses or ends. Out: a list of those that have not ended. */
#ifndef MEMSTOW_VRAM_CONTEXTS_H
#define MEMSTOW_VRAM_CONTEXTS_H

#include "preload/copies/vram_quiet.h"

#pragma GCC visibility push(hidden)

/* Notes a context in which work may run. A move out of a device first waits until no work runs in any noted context.
 * Call this even if nothing is served in the context. */
void vram_contexts_note(cuda_handle context);
/* Copies the list of noted contexts, and returns their number. *missing: there were more contexts than the list
 * holds. */
uint32_t vram_contexts_all(cuda_handle to[VRAM_CONTEXTS], bool *missing);
/* Sets *device to the device of a context. False: no block in the table was served in this context, so its device is
 * not known. */
bool vram_contexts_device(cuda_handle context, uint32_t *device);
/* Call this before the driver ends a context. It returns the number of this end. Blocks with lower numbers were served
 * before the end began. */
uint64_t vram_contexts_end_begins(void);
/* Call this when the context has ended. `end`: the number of this end. What becomes of blocks that were served in the
 * context:
 * - Blocks that were served after the end began stay. They belong to the next context with the same address.
 * - Earlier blocks that were served in place of a pool, other than spares, go to the context `heir`, because they
 *   belong to no context. `heir` can be the same context after a reset. If `heir` is NULL, they are given back.
 * - All other earlier blocks are given back. */
void vram_contexts_ended(cuda_handle context, cuda_handle heir, uint64_t end);

#pragma GCC visibility pop

#endif
