/* stow_thread.h — a thread of ours for the time of a move. It can have descriptors of its own, so that the program may
 * close and open descriptors meanwhile.
 * In: work. Out: a thread that does the work. pthread_create is not used, because it allocates, and makes the program
 * multi-threaded for good. The thread uses its maker's thread-local storage, so its code must use no thread-local
 * variable. It also has its maker's signal mask, which must let no handler run. */
#ifndef MEMSTOW_STOW_THREAD_H
#define MEMSTOW_STOW_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct stow_thread;

/* Starts the thread; NULL: that failed. If `own_files` is not NULL, the thread gets an empty descriptor table of its
 * own. Linux before 5.9 cannot do this: the thread then shares its maker's descriptors. *own_files says whether the
 * thread has its own table, and is set before `work` is called. The kernel closes the descriptors that are left in the
 * table; stow_thread_join does not wait for this. */
struct stow_thread *stow_thread_start(void (*work)(void *context), void *context, bool *own_files);
/* Starts a process that shares memory and descriptors with its maker. The process goes on when a debugger has stopped
 * all threads of the program. NULL: that failed. */
struct stow_thread *stow_thread_start_apart(void (*work)(void *context), void *context);
/* The thread's id. With it, others can see that the thread is ours before the thread has set its name. */
uint32_t stow_thread_id(const struct stow_thread *self);
/* Waits for the end of the thread. A process that stow_thread_start_apart started is killed, so it must have finished
 * its work. */
void stow_thread_join(struct stow_thread *self);

#pragma GCC visibility pop

#endif
