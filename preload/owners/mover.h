/* mover.h — the present move of an owner's memory (out to files or the host, or back): how far it is, and how other
 * threads end it.
 * In: what the moving thread says at each chunk. Out: figures for other threads and for the ledger's header. A move
 * that was told to end ends after its present chunk (64 MiB at most). Other threads see only copies of the move's data,
 * because the move itself may be over. */
#ifndef MEMSTOW_MOVER_H
#define MEMSTOW_MOVER_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

/* What a move is part of: a call of the program, a piece of work of memstow's worker thread, or a request. When the
 * call, the work or the request is told to end early, the move ends. */
enum ender { BY_CALL, BY_WORKER, BY_REQUEST };

/* A move in progress. It lies in the stack frame of the thread that moves, and no other thread has its address. */
struct mover {
    uint32_t owner;
    bool out;
    struct move_end end;
    enum ender ender;
    uint64_t number; /* 0: the move has not been announced */
    uint64_t wanted; /* bytes, as announced by the latest mover_tell */
};
/* Call mover_begin when a move begins, after you have set `owner` and `out`. It sets the fields that say what ends the
 * move. Call mover_tell when `moved` of `wanted` bytes have moved; `context` is the mover. Call mover_leave when the
 * move has ended; `moved` is the result of the move. */
void mover_begin(struct mover *self);
void mover_tell(uint64_t moved, uint64_t wanted, void *context);
void mover_leave(const struct mover *self, int64_t moved);

/* --- ending a move early, after its present chunk --- */

/* Call it before this thread makes one move, or all moves of a trigger. These moves then count as a new call, so a
 * demand to end an earlier call does not end them. */
void mover_begin_call(void);
/* Any thread may call. Ends the present move if it goes in the direction `out` and belongs to `owner` (0: any owner).
 * The move may be the program's (for itself or for a request) or that of memstow's worker. Further moves of the same
 * call, request or work do not begin. Returns the number of the move, -ENOENT if there is no such move, or -EBUSY if a
 * lock stayed taken. */
int64_t mover_end(uint32_t owner, bool out);
/* Whether the move with this number still goes on. Also true if a lock stayed taken, so that this is not known. *moved
 * and *wanted get the bytes of the move, if they are still known. */
bool mover_is_on(uint64_t number, uint64_t *moved, uint64_t *wanted);

/* mover_request: call it when a move begins. If the move is for a request, returns the ticket of the request, and sets
 * *end to the word that will end the move; otherwise returns 0. mover_cancel_request: ends the moves for a request.
 * requests.c sets both pointers when the first request is added. */
extern uint64_t (*mover_request)(uint32_t owner, bool out, struct move_end *end);
extern void (*mover_cancel_request)(uint64_t ticket);

/* mover_begin_work: this thread is memstow's worker, and begins its next piece of work. Call mover_end_work when the
 * worker ends, because the kernel may then give its thread id to a thread of the program. */
void mover_begin_work(void);
void mover_end_work(void);
/* Ends the worker's move after its present chunk. Later moves of the same piece of work do not begin, and return
 * -ECANCELED. A move that is bringing device memory back is not ended. Moves of the program are not ended either
 * (requests_cancel ends those that are made for a request). Any thread may call. */
void mover_cancel_work(void);

#pragma GCC visibility pop

#endif
