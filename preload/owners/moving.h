/* moving.h — moves an owner's memory out and back, and gives free memory back. In: an owner, from the ABI, triggers and
 * requests. Out: bytes, or -errno as memstow.h has it; lines in the trace that say what could not be moved, and why.
 * Outside of hooks; one move at a time. */
#ifndef MEMSTOW_MOVING_H
#define MEMSTOW_MOVING_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

/* What can be moved: at all; and without the owner being declared idle. */
extern bool moving_can_stow, moving_can_in_use;

/* Owner 0: -ENOENT. What another owner adopted is moved with that one. */
int64_t owners_stow(uint32_t owner);
int64_t owners_stow_host(uint32_t owner);   /* what it has in devices stays there */
int64_t owners_stow_device(uint32_t owner); /* and nothing else; in a hook of CUDA's: no move is waited for */
int64_t owners_restore(uint32_t owner);
int64_t owners_release(uint32_t owner);

/* Why device memory stayed when this thread's last move had this result; NULL: the result has another cause. */
const char *owners_why_not_moved(int64_t result);

/* This thread's last move had an end put to it when some had moved, and not all. */
bool owners_cut_short(void);

/* Any thread: the bytes that the present move has moved so far, and how many it is to move; 0: there is none. The
 * ledger's header says the same, and names the owner. */
uint64_t owners_moved(uint64_t *wanted);

/* --- the early end of a move, after its present chunk --- */

/* This thread comes to what it does for a call of the program's: one move, or those of a trigger. An end from outside
 * that was for what it did before does not count any more. */
void owners_begin_call(void);
/* Any thread: ends the present move, out or back, no matter who made it: the program for itself or for a request, or
 * memstow's worker. The rest of the same call does not begin. Returns its number; -ENOENT: there is none, or it is
 * another owner's than `owner` (0: anybody's). */
int64_t owners_end_move(uint32_t owner, bool out);
/* Whether that move still goes on; how many bytes it has moved. */
bool owners_is_moving(uint64_t number, uint64_t *moved, uint64_t *wanted);

/* Where a move that begins now for a request from outside learns that it is to end, and its ticket; 0: it is for none.
 * And an end to what is moved for a request. requests.c sets both with the first request. */
extern uint64_t (*moving_request)(uint32_t owner, bool out, struct move_end *end);
extern void (*moving_cancel_request)(uint64_t ticket);

/* This thread is memstow's own worker, and comes to what it does next. */
void owners_begin_work(void);
/* Any thread: ends the worker's move after its present chunk. The rest of the same trigger does not begin: -ECANCELED.
 * Moves of the program's go on: those for a request end by requests_cancel. Device memory comes back as a whole, or not
 * at all. */
void owners_cancel(void);
/* Finds out how the kernel can help: with the first model or custom. */
void moving_begin(void);

#pragma GCC visibility pop

#endif
