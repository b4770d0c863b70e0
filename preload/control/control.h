/* control.h — the control socket of a process, which `memstow stow PID …` talks to.
 * In: the first owner. Out: a thread that listens (endpoint.h), passes requests on (requests.h), and reports on them
 * (wire.h); and a worker, once there is something to do that the program does not do itself. A process without owners
 * has neither thread. A forked child has none until its first owner.
 *
 * Both threads share a descriptor table that nobody else has: the program cannot close or find their descriptors, and
 * its children do not inherit them. Both block all signals, and use neither the program's allocator nor its standard
 * output. */
#ifndef MEMSTOW_CONTROL_H
#define MEMSTOW_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Starts the control thread, on the first call. If no thread can be made, the ledger gets a note with the reason, and
 * the next call tries again. Call it without a lock, from any thread; it keeps errno. */
void control_begin(void);

/* Seconds, for a caller of control_stop that can wait. */
enum { CONTROL_PATIENCE = 100 };
/* Ends both threads and waits until they have ended, at most so many seconds. That takes as long as a move takes to
 * stop, and a disk may hang. True: they were running and have ended. */
bool control_stop(uint32_t seconds);
/* Starts the threads that control_stop has ended. Call it on the same thread. */
void control_resume(void);
/* The process was on its way into a sandbox, and is not in one. Starts the control thread if that was put off. */
void control_retry(void);

/* Waits for the threads that control_stop gave up on. It makes no system call, because the caller may be in a sandbox:
 * it spins, for some ten seconds to minutes at most. One caller at a time. */
void control_await(void);

/* The process is about to end: removes the socket. Threads may still be at work. */
void control_end(void);

#pragma GCC visibility pop

#endif
