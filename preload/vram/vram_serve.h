/* vram_serve.h — decides which device memory of models memstow serves, so that it can move (stow_cuda.h). In: entries
 * of the driver that a hook is about to call. Out: the function that it calls instead, where MEMSTOW_CUDA_MOVES=SIZE
 * asks for it. Allocations of SIZE and more inside a model's scope are served. Frees of them, and figures that must
 * fit, are answered. Everything else goes to the driver as it is. Any thread.
 *
 * MEMSTOW_CUDA_HOST=SIZE: so much of the host's memory may hold what is out. MEMSTOW_CUDA_PINNED=SIZE: so much of that
 * may be pinned. MEMSTOW_CUDA_DISK=SIZE: so much more may go to files. MEMSTOW_CUDA_VERIFY=1: each copy out is compared
 * with the original. */
#ifndef MEMSTOW_VRAM_SERVE_H
#define MEMSTOW_VRAM_SERVE_H

#include "preload/cuda/cuda_route.h"
#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

/* MEMSTOW_CUDA_MOVES is set. */
extern bool vram_serves;

/* What of its settings could not be read, as a sentence; NULL: nothing. */
const char *vram_serve_unreadable(void);

/* The function that a hook calls in place of `real`, at once and on this thread; mostly `real` itself. */
void *vram_serve_instead(enum cuda_entry_id entry, void *real);

/* Notes a context in which work may run. What was served in a context that has ended is gone with it, but for memory in
 * place of a pool. A context that was reset goes on. */
void vram_serve_context_made(cuda_handle context, uint32_t device);
void vram_serve_context_ended(cuda_handle context, bool goes_on, uint64_t end); /* of stow_cuda_end_begins */

/* Why device memory gave a move of the calling thread this result, since it forgot the earlier ones; NULL: it did not.
 */
const char *vram_serve_why(int64_t result);
void vram_serve_forget_why(void);
/* Moves an owner's memory. Returns bytes; -errno when nothing moved and something should have; 0 when there is nothing.
 * The trace says what stays. `at_once`: where another move is under way, nothing moves. */
int64_t vram_serve_out(uint32_t owner, bool idle, bool at_once, struct move_end end);
int64_t vram_serve_in(uint32_t owner);
/* Bytes of an owner's that are out. */
uint64_t vram_serve_stowed(uint32_t owner);

#pragma GCC visibility pop

#endif
