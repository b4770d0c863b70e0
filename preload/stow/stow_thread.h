/* stow_thread.h — a thread of our own for as long as a move takes, with descriptors of its own. So the program can
 * close and open descriptors meanwhile: none of them is the thread's. In: work. Out: a thread that does it. It is not
 * made by pthread_create, which allocates and makes the program one with threads for good. It runs on its maker's
 * thread-local storage, so nothing in it may use any; and with its maker's signal mask, which must let no handler run.
 */
#ifndef MEMSTOW_STOW_THREAD_H
#define MEMSTOW_STOW_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct stow_thread;

/* Starts the thread; NULL: that is not possible. If `own_files` is not NULL, the thread has descriptors of its own,
 * none at first, and those that it leaves open are closed after thread_join has returned. *own_files says, before work
 * is called, whether that is so: before Linux 5.9 they are its maker's. */
struct stow_thread *thread_start(void (*work)(void *context), void *context, bool *own_files);
/* The same as a process that shares memory and descriptors with its maker: it goes on while a debugger has stopped all
 * threads of the program. NULL: that is not possible. */
struct stow_thread *thread_start_apart(void (*work)(void *context), void *context);
/* Its number: it tells the thread as ours before that could have named itself. */
uint32_t thread_id(const struct stow_thread *self);
/* Waits for its end. A process is killed: it must have nothing left to do. */
void thread_join(struct stow_thread *self);

#pragma GCC visibility pop

#endif
