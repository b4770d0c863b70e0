/* vram_dying.h — the list of the calls in progress that end a context. Moves keep away from such a context.
 * In: the beginning and the end of each such call. Out: whether a call ends a given context, or any context. A callback
 * of the program may leave such a call by longjmp, and then nothing reports the end of the call. So the stacks of the
 * calling threads are looked at. The caller holds the lock of the table (vram_table.h). */
#ifndef MEMSTOW_VRAM_DYING_H
#define MEMSTOW_VRAM_DYING_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"

#pragma GCC visibility push(hidden)

/* vram_dying_comes: adds a call to the list; false: the list is full. vram_dying_begins: the call begins to end its
 * context. vram_dying_over: removes the call, which has returned. `mark`: a word in the stack frame of the call.
 * vram_dying_comes writes to it, and the caller leaves it alone. */
bool vram_dying_comes(cuda_handle context, uintptr_t *mark);
void vram_dying_begins(const uintptr_t *mark);
void vram_dying_over(const uintptr_t *mark);

/* Whether a call that ends this context has begun. */
bool vram_dying_has(cuda_handle context);
/* Whether any call is in the list. First removes the calls that were left by longjmp. */
bool vram_dying_any(void);
/* Whether the list has a call, even one that was left by longjmp. Needs no lock: if this returns false, the caller
 * need not take the lock at all. */
bool vram_dying_maybe(void);
/* Removes this thread's calls whose marks lie below `frame`, which is a stack frame of this thread: these calls were
 * left by longjmp. */
void vram_dying_left(uintptr_t frame);
/* Whether this thread itself made one of the calls. Then the thread must not wait for the end of all calls, because it
 * would wait for ever. */
bool vram_dying_is_mine(void);

#pragma GCC visibility pop

#endif
