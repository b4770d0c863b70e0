/* shutdown_threads.h — the threads that a program waits for before it ends, and the threads that are left.
 * In: threads, one by one. Out: whether they have ended; lines in the log. A thread id counts only together with the
 * thread's start time. */
#ifndef MEMSTOW_SHUTDOWN_THREADS_H
#define MEMSTOW_SHUTDOWN_THREADS_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Registers the calling thread. Returns 0 or -errno. */
int shutdown_thread_add(const char *name);
/* Waits until all registered threads except the caller have ended, or the time is over. Returns how many are left. Each
 * thread that is waited for gets a line in the log. */
int64_t shutdown_threads_wait(uint64_t patience_ns);
/* Returns how many threads are left. It does not count memstow's own threads, the calling thread, the thread `asks`,
 * and the thread `limit`, which watches the time limit (0 if there is no such thread). The log gets a line for each of
 * the first 64 threads that are left. The call takes no lock. */
int64_t shutdown_threads_left(uint32_t asks, uint32_t limit);
/* In a forked child: forgets the threads, which are the parent's. */
void shutdown_threads_reset(void);

#pragma GCC visibility pop

#endif
