/* requests.h — the queue of requests from outside. In: requests that came through the control socket (control.c). Out:
 * each with a ticket, to the program, or to memstow's own worker until the program asks for requests for the first
 * time; and the answer on its way back. Any thread; a forked child begins with none. */
#ifndef MEMSTOW_REQUESTS_H
#define MEMSTOW_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

enum { REQUESTS_MOST = 16 };

enum request_state { REQUEST_NONE, REQUEST_WAITING, REQUEST_TAKEN, REQUEST_DONE };

/* The ticket; -EBUSY: so many are unanswered; -ENOTSUP: only a program answers this kind, and this one does not. */
int64_t requests_add(uint32_t kind, uint32_t owner, const char *text);
/* A trigger that nobody waits for, once at a time; false: memstow answers by itself. */
bool requests_pass_on(uint32_t reason, const char *text, uint64_t needed);
/* The state of a request. After REQUEST_DONE, which comes with the answer, it is REQUEST_NONE. */
enum request_state requests_look(uint64_t ticket, int64_t *result, char text[256]);
/* Nobody waits for the answer any more. One that nobody has taken is taken back. */
void requests_leave(uint64_t ticket);
/* Takes back one that nobody has taken: true. */
bool requests_take_back(uint64_t ticket);

/* --- answers --- */

/* The kinds of request, as bits: all that there were before a program could choose. */
enum { REQUESTS_OLD = 0x1E, REQUESTS_ALL = 0x19E };

/* 1: `out` is the next request of these kinds, or 0 after so many milliseconds, or when a signal came; from then on the
 * program answers them. -ENODEV: none can come any more. */
int requests_next(struct memstow_request *out, uint32_t kinds, uint32_t milliseconds);
/* The same for memstow's worker: false at once while there is none, or when the program answers. */
bool requests_take(struct memstow_request *out);
/* Whether there is one for the worker; whether it has this one. */
bool requests_for_worker(void);
bool requests_worker_has(uint64_t ticket);
/* -ENOENT: no such request is to be answered. */
int requests_done(uint64_t ticket, int64_t result, const char *text);

/* --- an asker takes a request back that the program has taken --- */

/* Ends what the program moves for it. Nothing, if it has been answered by now. */
void requests_cancel(uint64_t ticket);
/* The word by which a move of an owner, out or back, that begins now learns that it is to end: that of the oldest
 * request that the program has taken, that such a move may be for, and whose asker still waits. Its ticket; 0: it is
 * for none. */
uint64_t requests_end(uint32_t owner, bool out, struct move_end *end);

/* Until there may be a new request, or requests_wake; at most so long. 0, or -EINTR. */
uint32_t requests_seen(void);
int requests_wait(uint32_t seen, uint64_t nanoseconds);
void requests_wake(void);

#pragma GCC visibility pop

#endif
