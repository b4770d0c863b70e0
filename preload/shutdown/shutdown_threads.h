/* shutdown_threads.h — the threads that a program waits for before it ends, and those that are left.
 * In: threads, each by itself. Out: their end, or their names in the log. A tid counts with its start alone. */
#ifndef MEMSTOW_SHUTDOWN_THREADS_H
#define MEMSTOW_SHUTDOWN_THREADS_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The calling thread is one. 0 or -errno. */
int shutdown_thread_add(const char *name);
/* Waits for all of them at most that long, side by side: how many are there still. Each is a line of the log. Not for
 * the caller. */
int64_t shutdown_threads_wait(uint64_t patience_ns);
/* How many threads of any kind are there, without memstow's own, this one, the asker and the thread that watches the
 * limit (0: nobody). The first of them are lines of the log. Takes no lock. */
int64_t shutdown_threads_left(uint32_t asks, uint32_t limit);
/* In a forked child: there is one thread. */
void shutdown_threads_reset(void);

#pragma GCC visibility pop

#endif
