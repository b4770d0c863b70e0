/* moving.h — what an owner has is moved out, brought back, or given back.
 * In: an owner, from the ABI, triggers and requests. Out: bytes, or -errno as memstow.h has it, and lines in the trace
 * that say what could not be moved and why. Outside of hooks; one move at a time. */
#ifndef MEMSTOW_MOVING_H
#define MEMSTOW_MOVING_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Owner 0: -ENOENT. What another owner adopted is moved with that one. */
int64_t owners_stow(uint32_t owner);
int64_t owners_stow_host(uint32_t owner); /* what it has in devices stays there */
int64_t owners_restore(uint32_t owner);
int64_t owners_release(uint32_t owner);

/* Any thread: the bytes that the move at hand has moved so far, whoever makes it, and how many it is to move; 0 when
 * there is none. */
uint64_t owners_moved(uint64_t *wanted);

/* This thread is memstow's own worker, and comes to what it does next. */
void owners_begin_work(void);
/* Any thread: an end to what the worker is at, after the chunk that moves. What it would move after that, for the same
 * trigger, does not begin: -ECANCELED. Moves of the program's go on: those that it makes for a request end by
 * requests_cancel, but for what was in a device's memory, of which all comes back or none. */
void owners_cancel(void);
/* Finds out how the kernel can help: with the first model or custom. */
void moving_begin(void);

#pragma GCC visibility pop

#endif
