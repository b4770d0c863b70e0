/* vram_dying.h — the contexts that calls in progress end: moves keep away from them.
 * In: such calls, before and after. Out: whether a context is ending, or any. A call that was left by longjmp, out of a
 * program's callback, never says that it is over. So the threads of these calls are looked at. The caller holds the
 * lock of the table. */
#ifndef MEMSTOW_VRAM_DYING_H
#define MEMSTOW_VRAM_DYING_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"

#pragma GCC visibility push(hidden)

/* A call comes, begins, and is over. `mark`: a word on the calling thread's stack that has the context as long as the
 * call is in progress. False: the list is full. */
bool vram_dying_comes(cuda_handle context, const uintptr_t *mark);
void vram_dying_begins(const uintptr_t *mark);
void vram_dying_over(const uintptr_t *mark);

/* Whether a call that ends this context has begun. */
bool vram_dying_has(cuda_handle context);
/* Whether there is a call that has come. It forgets calls that were left first. */
bool vram_dying_any(void);
/* Without the lock: whether it is worth asking. */
bool vram_dying_maybe(void);
/* Forgets the calling thread's calls that lie below `frame`, which is a frame of this thread: they were left. */
void vram_dying_left(uintptr_t frame);
/* Whether one of the calls is the calling thread's: then waiting for its end would never end. */
bool vram_dying_is_mine(void);

#pragma GCC visibility pop

#endif
