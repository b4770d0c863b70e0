/* requests.h — the queue of requests from outside.
 * In: requests from the control socket (clients.c), and triggers that watch.c passes on. Out: the same requests, each
 * with a ticket. The program gets the kinds that it has asked for; memstow's own worker gets all others. Answers go
 * back the same way. Any thread may call. A forked child begins with an empty queue. */
#ifndef MEMSTOW_REQUESTS_H
#define MEMSTOW_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"
#include "preload/stow/move_end.h"

#pragma GCC visibility push(hidden)

enum { REQUESTS_MOST = 16 };

/* NONE: there is no such request. WAITING: nobody has taken it yet. TAKEN: the program or the worker is working on it.
 * DONE: it is answered. */
enum request_state { REQUEST_NONE, REQUEST_WAITING, REQUEST_TAKEN, REQUEST_DONE };

/* Adds a request, and returns its ticket (its number). Returns -EBUSY if too many requests are unanswered, or -ENOTSUP
 * if memstow's worker does not answer this kind and the program has not asked for it. */
int64_t requests_add(uint32_t kind, uint32_t owner, const char *text);
/* Passes a trigger (a moment when the owners' policies are applied) on to the program, as a request whose answer nobody
 * waits for. Only one such request is in the queue at a time. False: memstow must handle the trigger itself. */
bool requests_pass_on(uint32_t reason, const char *text, uint64_t needed);
/* The state of a request. REQUEST_DONE comes once, with the answer; after that the state is REQUEST_NONE. */
enum request_state requests_look(uint64_t ticket, int64_t *result, char text[256]);
/* Call it when no client waits for the answer any more. A request that nobody is working on is removed. */
void requests_leave(uint64_t ticket);
/* Removes a request from the queue. False: the program or the worker has already taken it. */
bool requests_take_back(uint64_t ticket);

/* --- for the program and the worker: taking requests, answering them --- */

/* Sets of kinds of requests: the bit of a kind is 1 << kind. REQUESTS_ALL: all kinds. REQUESTS_OLD: the kinds that
 * memstow_request_next asks for. memstow's worker answers each kind of REQUESTS_OLD until the program asks for that
 * kind. Only the program can answer the other kinds. */
enum { REQUESTS_OLD = 0x1E, REQUESTS_ALL = 0x19E };

/* Waits for the program's next request of these kinds. From the first call on, the program answers these kinds. Returns
 * 1 if *out is a request, 0 if no request came within `milliseconds` or a signal came, or -ENODEV if no request can
 * come any more. */
int requests_next(struct memstow_request *out, uint32_t kinds, uint32_t milliseconds);
/* As requests_next, for memstow's worker, without waiting. It takes only kinds that the program does not answer. False:
 * there is no such request. */
bool requests_take(struct memstow_request *out);
/* Whether there is a request for the worker. */
bool requests_for_worker(void);
/* Answers a request that was taken. -ENOENT: there is no such request. -EBUSY: the queue's lock stayed taken. */
int requests_done(uint64_t ticket, int64_t result, const char *text);

/* --- an asker takes back a request that was taken --- */

/* Ends the move of memory that the program or the worker is making for the request, after the move's present chunk.
 * Does nothing if the request has been answered. */
void requests_cancel(uint64_t ticket);
/* Call it when a move begins. Finds the oldest request that the program has taken, that fits the move, and whose asker
 * still waits: the program perhaps makes the move for this request. Returns the request's ticket, or 0 if there is no
 * such request. Sets *at, by which the move learns that it is to end (move_end.h). */
uint64_t requests_end(uint32_t owner, bool out, struct move_end *at);

/* --- waiting for requests --- */

/* A number that grows with each request that is added, and with each call of requests_wake. Ask for it before you look
 * for requests. */
uint32_t requests_seen(void);
/* Waits until the number is not `seen` any more, or the time is over. Returns 0, -ETIMEDOUT or -EINTR, or -EAGAIN if
 * the number had changed before the call. */
int requests_wait(uint32_t seen, uint64_t nanoseconds);
/* Wakes all waiting threads, and each looks again. */
void requests_wake(void);

#pragma GCC visibility pop

#endif
