/* stow_thread.h — a thread of ours for the time of a move. It has descriptors of its own, so the program may close and
 * open descriptors meanwhile.
 * In: work. Out: a thread that does it. pthread_create is not used: it allocates, and makes the program multi-threaded
 * for good. The thread runs on its maker's thread-local storage, so its code must not use any. It also has its maker's
 * signal mask, which must let no handler run. */
#ifndef MEMSTOW_STOW_THREAD_H
#define MEMSTOW_STOW_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct stow_thread;

/* Starts the thread; NULL: that failed. If `own_files` is not NULL, the thread gets a descriptor table of its own,
 * empty at first. Descriptors that it leaves open are closed after stow_thread_join. *own_files is set before `work` is
 * called: it becomes false before Linux 5.9, where the thread shares its maker's descriptors. */
struct stow_thread *stow_thread_start(void (*work)(void *context), void *context, bool *own_files);
/* Starts a process that shares memory and descriptors with its maker. It goes on when a debugger has stopped all
 * threads of the program. NULL: that failed. */
struct stow_thread *stow_thread_start_apart(void (*work)(void *context), void *context);
/* Its thread id. It identifies the thread as ours before the thread has set its name. */
uint32_t stow_thread_id(const struct stow_thread *self);
/* Waits for the end of the thread. A process is killed: it must have finished its work. */
void stow_thread_join(struct stow_thread *self);

#pragma GCC visibility pop

#endif
