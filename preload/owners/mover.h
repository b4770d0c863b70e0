/* mover.h — the move of an owner's memory that is in progress: how far it is, and how other threads end it.
 * In: the thread that moves, at each chunk. Out: figures for other threads and for the ledger's header; a move that was
 * told to end ends after its present chunk (64 MiB at most). Other threads must not touch memory of the move, which may
 * be over. */
#ifndef MEMSTOW_MOVER_H
#define MEMSTOW_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

/* What a move is part of: a call of the program, work of the worker, or a request. Ending that part early ends the
 * move. */
enum ender { BY_CALL, BY_WORKER, BY_REQUEST };

/* The mover lies in the frame of the thread that moves. No other thread has its address. */
struct mover {
    uint32_t owner;
    bool out;
    struct move_end end;
    enum ender ender;
    uint64_t number; /* 0: the move has not been announced */
    uint64_t wanted; /* bytes, as announced by the latest mover_tell */
};
/* begin: a move of the owner begins; finds out who can end it. tell: `moved` of `wanted` bytes have moved; `context` is
 * the mover. leave: the move has ended with this result. */
void mover_begin(struct mover *self);
void mover_tell(uint64_t moved, uint64_t wanted, void *context);
void mover_leave(const struct mover *self, int64_t moved);

/* --- ending a move early, after its present chunk --- */

/* This thread begins a call of the program: one move, or all moves of a trigger. A request to end an earlier call does
 * not end this one. */
void mover_begin_call(void);
/* Any thread may call. Ends the present move if it goes in the direction `out`, whoever makes it: the program, for
 * itself or for a request, or memstow's worker. Further moves of the same call, request or work do not begin. Returns
 * the number of the move; -ENOENT: there is no move in this direction, or it belongs to another owner than `owner` (0:
 * any owner). */
int64_t mover_end(uint32_t owner, bool out);
/* Whether the move with this number still goes on, and how far it is. */
bool mover_is_on(uint64_t number, uint64_t *moved, uint64_t *wanted);

/* mover_request: call it when a move begins. Returns the ticket of the request that the move is for, and sets *end to
 * the word that will end the move; 0: the move is for no request. mover_cancel_request: ends the moves for a request.
 * requests.c sets both pointers with the first request. */
extern uint64_t (*mover_request)(uint32_t owner, bool out, struct move_end *end);
extern void (*mover_cancel_request)(uint64_t ticket);

/* begin: this thread is memstow's worker, and begins its next work. end: the worker ends, and the kernel may give its
 * id to a thread of the program. */
void mover_begin_work(void);
void mover_end_work(void);
/* Any thread may call. Ends the worker's move after its present chunk. The rest of the same trigger does not begin, and
 * returns -ECANCELED. Moves of the program go on; requests_cancel ends moves for a request. Device memory comes back as
 * a whole, or not at all. */
void mover_cancel_work(void);

#pragma GCC visibility pop

#endif
