/* serve.h — decides which requests for device memory memstow serves. To serve: to make the memory from physical pieces
 * in place of the driver, so that the memory can move.
 * In: entries of the driver that a hook is about to call. Out: the function to call instead, if MEMSTOW_CUDA_MOVES=SIZE
 * is set (serve_settings.h). memstow serves allocations of SIZE and more in a model's scope, frees them, and corrects
 * the driver's answers about them. Everything else goes to the driver unchanged. Any thread may call. */
#ifndef MEMSTOW_SERVE_H
#define MEMSTOW_SERVE_H

#include "preload/cuda/cuda_route.h"
#include "preload/serve/serve_settings.h"

#pragma GCC visibility push(hidden)

/* Returns the function that a hook must call in place of `real`. Usually it is `real` itself. The hook must call it at
 * once, and on this thread. `caller`: an address in the code that made the thread's outermost call of CUDA. */
void *serve_instead(enum cuda_entry_id entry, void *real, uintptr_t caller);

#pragma GCC visibility pop

#endif
