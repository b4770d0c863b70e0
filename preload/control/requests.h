/* requests.h — the queue of requests from outside.
 * In: requests from the control socket (control.c). Out: each request, with a ticket, to the program; until the program
 * first asks for requests, memstow's own worker gets them. Answers go back the same way. Any thread may call. A forked
 * child begins with an empty queue. */
#ifndef MEMSTOW_REQUESTS_H
#define MEMSTOW_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

enum { REQUESTS_MOST = 16 };

enum request_state { REQUEST_NONE, REQUEST_WAITING, REQUEST_TAKEN, REQUEST_DONE };

/* The ticket; -EBUSY: too many requests are unanswered; -ENOTSUP: only a program answers this kind, and this one does
 * not. */
int64_t requests_add(uint32_t kind, uint32_t owner, const char *text);
/* Passes a trigger on to the program. Nobody waits for an answer. Only one such trigger is in the queue at a time.
 * False: memstow handles the trigger itself. */
bool requests_pass_on(uint32_t reason, const char *text, uint64_t needed);
/* The state of a request. REQUEST_DONE comes once, with the answer; after that the state is REQUEST_NONE. */
enum request_state requests_look(uint64_t ticket, int64_t *result, char text[256]);
/* Tells that no client waits for the answer any more. A request that was not taken is taken back. */
void requests_leave(uint64_t ticket);
/* Takes back a request. False: it was already taken. */
bool requests_take_back(uint64_t ticket);

/* --- answers --- */

/* Kinds of requests, as bits. REQUESTS_OLD: those that existed before a program could choose. */
enum { REQUESTS_OLD = 0x1E, REQUESTS_ALL = 0x19E };

/* 1: `out` is the next request of these kinds. 0: none came in that time, or a signal came. From the first call on, the
 * program answers these kinds. -ENODEV: no request can come any more. */
int requests_next(struct memstow_request *out, uint32_t kinds, uint32_t milliseconds);
/* As requests_next, for memstow's worker, without waiting. False: there is no request, or the program answers requests
 * itself. */
bool requests_take(struct memstow_request *out);
/* requests_for_worker: whether there is a request for the worker. requests_worker_has: whether the worker has taken
 * this request. */
bool requests_for_worker(void);
bool requests_worker_has(uint64_t ticket);
/* -ENOENT: there is no such request to answer. */
int requests_done(uint64_t ticket, int64_t result, const char *text);

/* --- an asker takes back a request that the program has taken --- */

/* Ends the move that the program makes for the request. Does nothing if the request has been answered. */
void requests_cancel(uint64_t ticket);
/* For a move that begins now: the ticket of the request that it may be for, and the word that will end it. The request
 * is the oldest one that the program has taken, that fits the move, and whose asker still waits. 0: there is none. */
uint64_t requests_end(uint32_t owner, bool out, struct move_end *at);

/* --- waiting --- */

/* A number that grows with each event in the queue, and by requests_wake. Ask for it before you look for requests. */
uint32_t requests_seen(void);
/* Waits until the number is not `seen` any more, or the time is over. 0; or -errno: -EAGAIN, it had changed before;
 * -ETIMEDOUT; -EINTR. */
int requests_wait(uint32_t seen, uint64_t nanoseconds);
/* Wakes all waiting threads, and each looks again. */
void requests_wake(void);

#pragma GCC visibility pop

#endif
