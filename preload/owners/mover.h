/* mover.h — the move at hand: how far it is, and how it is ended from outside.
 * In: the thread that moves, at each chunk. Out: figures for others and for the ledger's header; an end to the move,
 * after the chunk that it is at. It must not touch memory of the move, which may be over. */
#ifndef MEMSTOW_MOVER_H
#define MEMSTOW_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

enum ender { BY_CALL, BY_WORKER, BY_REQUEST };

/* It is a frame of the thread that moves: nobody else is told where it is. */
struct mover {
    uint32_t owner;
    bool out;
    struct move_end end;
    enum ender ender;
    uint64_t number; /* 0: it is not at hand, and nobody was told of it */
    uint64_t wanted; /* as was told last */
};
/* A move of the owner's begins: finds out by whom it can be ended. `context` is the mover, which so many bytes have
 * moved for, of so many. And it has ended with this result. */
void mover_begin(struct mover *self);
void mover_tell(uint64_t moved, uint64_t wanted, void *context);
void mover_leave(const struct mover *self, int64_t moved);

/* --- the early end of a move, after its present chunk --- */

/* This thread comes to what it does for a call of the program's: one move, or those of a trigger. An end from outside
 * that was for what it did before does not count any more. */
void mover_begin_call(void);
/* Any thread: ends the present move, out or back, no matter who made it: the program for itself or for a request, or
 * memstow's worker. The rest of the same call does not begin. Returns its number; -ENOENT: there is none, or it is
 * another owner's than `owner` (0: anybody's). */
int64_t mover_end(uint32_t owner, bool out);
/* Whether that move still goes on; how many bytes it has moved. */
bool mover_is_on(uint64_t number, uint64_t *moved, uint64_t *wanted);

/* Where a move that begins now for a request from outside learns that it is to end, and its ticket; 0: it is for none.
 * And an end to what is moved for a request. requests.c sets both with the first request. */
extern uint64_t (*mover_request)(uint32_t owner, bool out, struct move_end *end);
extern void (*mover_cancel_request)(uint64_t ticket);

/* This thread is memstow's own worker, and comes to what it does next. */
void mover_begin_work(void);
/* Any thread: ends the worker's move after its present chunk. The rest of the same trigger does not begin: -ECANCELED.
 * Moves of the program's go on: those for a request end by requests_cancel. Device memory comes back as a whole, or not
 * at all. */
void mover_cancel_work(void);

#pragma GCC visibility pop

#endif
