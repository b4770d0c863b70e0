/* vram_serve.h — decides which device memory of models memstow serves, so that it can move (stow_cuda.h).
 * In: entries of the driver that a hook is about to call. Out: the function to call instead, if MEMSTOW_CUDA_MOVES=SIZE
 * is set. Allocations of SIZE and more in a model's scope are served. So are their frees, and figures that must fit.
 * Everything else goes to the driver unchanged. Any thread.
 *
 * MEMSTOW_CUDA_HOST=SIZE: how much host memory may hold stowed content. MEMSTOW_CUDA_PINNED=SIZE: how much of that may
 * be pinned. MEMSTOW_CUDA_DISK=SIZE: how much more may go to files. MEMSTOW_CUDA_VERIFY=1: each copy is compared with
 * its original. */
#ifndef MEMSTOW_VRAM_SERVE_H
#define MEMSTOW_VRAM_SERVE_H

#include "preload/cuda/cuda_route.h"
#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

/* MEMSTOW_CUDA_MOVES is set. */
extern bool vram_serves;

/* A sentence about settings that are unreadable; NULL: there are none. */
const char *vram_serve_unreadable(void);

/* The function that a hook calls in place of `real`, at once and on this thread. Usually it is `real` itself. */
void *vram_serve_instead(enum cuda_entry_id entry, void *real);

/* made: work may run in this context. ended: memory served in it is gone, except memory in place of a pool; a context
 * that was reset goes on. */
void vram_serve_context_made(cuda_handle context, uint32_t device);
void vram_serve_context_ended(cuda_handle context, bool goes_on, uint64_t end); /* end: from stow_cuda_end_begins */

/* Why device memory gave the calling thread's move this result, since forget_why; NULL: it did not. */
const char *vram_serve_why(int64_t result);
void vram_serve_forget_why(void);
/* Move an owner's memory. They return bytes; -errno if nothing moved and something should have; 0 if there is nothing
 * to move. The trace says what stays. `at_once`: if another move is in progress, nothing moves. */
int64_t vram_serve_out(uint32_t owner, bool idle, bool at_once, struct move_end end);
int64_t vram_serve_in(uint32_t owner);
/* The owner's stowed bytes. */
uint64_t vram_serve_stowed(uint32_t owner);

#pragma GCC visibility pop

#endif
