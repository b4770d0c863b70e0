/* control.h — the control socket of a process: what `memstow stow PID …` talks to.
 * In: the first owner. Out: a thread that listens (place.h), hands on what it is asked (requests.h), and tells how that
 * goes (wire.h); and a worker, once there is something to do that the program does not do itself. A process without
 * owners has neither. A forked child has none of its own until its first owner.
 *
 * Both threads share a table of descriptors that nobody else sees: the program cannot close what is theirs, nor find
 * it, and its children do not inherit it. They block all signals, and use neither the program's allocator nor its
 * standard output. */
#ifndef MEMSTOW_CONTROL_H
#define MEMSTOW_CONTROL_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Starts it, the first time. Where that cannot be done, the ledger has a note that says why. To be called without a
 * lock, from any thread; keeps errno. */
void control_begin(void);

/* Ends both threads, and waits until they have: as long as a move takes to stop. True: they were there, and
 * control_resume, by the same thread, has them back. */
bool control_stop(void);
void control_resume(void);

/* The process is about to end: removes the socket. Threads may still be at work. */
void control_end(void);

#pragma GCC visibility pop

#endif
