/* moving.h — moves an owner's memory out (from the host to files, from devices to the host) and back, and gives free
 * memory back to the system.
 * In: an owner, from the ABI, triggers and requests. Out: bytes, or -errno as in memstow.h; lines in the trace that say
 * what did not move, and why. A hook may call only moving_stow_device. There is one move at a time. */
#ifndef MEMSTOW_MOVING_H
#define MEMSTOW_MOVING_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* moving_can_stow: memory can be moved at all. moving_can_in_use: memory of an owner that is not idle can be moved,
 * too. */
extern bool moving_can_stow, moving_can_in_use;

/* These functions return the bytes that moved, or -errno. -ENOENT: there is no such owner (moving_stow_device does not
 * check). The memory of an adopted owner moves with its adopter. */
int64_t moving_stow(uint32_t owner);
int64_t moving_stow_host(uint32_t owner); /* the owner's device memory stays */
/* Moves only the owner's device memory. It does not wait for another move, because a hook of CUDA calls it
 * (rescue.h). */
int64_t moving_stow_device(uint32_t owner);
int64_t moving_restore(uint32_t owner);
int64_t moving_release(uint32_t owner);

/* Says in words why the calling thread's latest move returned the error `result`. Returns NULL if device memory was not
 * the cause of the error. */
const char *moving_why_not(int64_t result);

/* Whether this thread's latest move of a model or custom was told to end, and some bytes therefore did not move.
 * Meaningful only if that move returned no error. */
bool moving_was_cut_short(void);

/* Any thread may call. Returns the bytes that the present move of host memory has moved. *wanted gets the bytes that it
 * is to move, or 0 if there is no move or these bytes are not known yet. The ledger's header also has both figures, and
 * the owner. */
uint64_t moving_progress(uint64_t *wanted);

/* Finds out what the kernel can do, and sets the two variables above. Call it when an owner was opened. */
void moving_begin(void);

#pragma GCC visibility pop

#endif
