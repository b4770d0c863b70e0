/* moving.h — moves an owner's memory out and back, and gives free memory back. In: an owner, from the ABI, triggers and
 * requests. Out: bytes, or -errno as memstow.h has it; lines in the trace that say what could not be moved, and why.
 * Outside of hooks; one move at a time. */
#ifndef MEMSTOW_MOVING_H
#define MEMSTOW_MOVING_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* What can be moved: at all; and without the owner being declared idle. */
extern bool moving_can_stow, moving_can_in_use;

/* Owner 0: -ENOENT. What another owner adopted is moved with that one. */
int64_t moving_stow(uint32_t owner);
int64_t moving_stow_host(uint32_t owner);   /* what it has in devices stays there */
int64_t moving_stow_device(uint32_t owner); /* and nothing else; in a hook of CUDA's: no move is waited for */
int64_t moving_restore(uint32_t owner);
int64_t moving_release(uint32_t owner);

/* Why device memory stayed when this thread's last move had this result; NULL: the result has another cause. */
const char *moving_why_not(int64_t result);

/* This thread's last move had an end put to it when some had moved, and not all. */
bool moving_was_cut_short(void);

/* Any thread: the bytes that the present move has moved so far, and how many it is to move; 0: there is none. The
 * ledger's header says the same, and names the owner. */
uint64_t moving_progress(uint64_t *wanted);

/* Finds out how the kernel can help: with the first model or custom. */
void moving_begin(void);

#pragma GCC visibility pop

#endif
