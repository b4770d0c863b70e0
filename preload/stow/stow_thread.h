/* stow_thread.h — a thread of our own for as long as a move takes, with descriptors of its own: what the program closes
 * and opens meanwhile cannot be ours, and ours cannot be what it means. Not by pthread_create, which allocates and
 * makes the program one with threads for good. It runs on its maker's thread-local storage, so that nothing in it may
 * use any, and with its maker's signal mask, which must let no handler run. */
#ifndef MEMSTOW_STOW_THREAD_H
#define MEMSTOW_STOW_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

struct stow_thread;

/* NULL: there can be none. `own_files`, where it is not NULL: its descriptors are its own, of which it has none at
 * first, and what it leaves open is closed after thread_join has returned. *own_files says, before work is called,
 * whether that is so: before Linux 5.9 they are its maker's. */
struct stow_thread *thread_start(void (*work)(void *context), void *context, bool *own_files);
/* The same as a process that shares memory and descriptors with its maker, for what must go on while a debugger has
 * stopped all threads of the program. NULL: there can be none. */
struct stow_thread *thread_start_apart(void (*work)(void *context), void *context);
/* Its number, which says that it is ours before it could have named itself. */
uint32_t thread_id(const struct stow_thread *self);
/* Waits for its end. One that is apart is killed: it must have nothing left to do. */
void thread_join(struct stow_thread *self);

#pragma GCC visibility pop

#endif
