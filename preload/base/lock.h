/* lock.h — for what one thread at a time may do, and must not leave half done.
 * In: who wants to. Out: whether it may, now or after a bounded wait. While a lock is held no signal handler runs on
 * its thread: none can jump out of the work for good (longjmp), or find its own thread in the middle of it. That takes
 * two system calls, so locks are for rare work. In a sandbox, where nothing is asked of the kernel, handlers do run. */
#ifndef MEMSTOW_LOCK_H
#define MEMSTOW_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* All zero: nobody holds it. */
struct lock {
    uint32_t held;
    bool blocked; /* below: what the holder is to restore */
    uint64_t signals;
};

bool lock_try(struct lock *self);
/* False: it has been held for long (lock_pause), by a thread that is stopped, or one that is not in this process. */
bool lock_wait(struct lock *self);
void lock_let_go(struct lock *self);
/* How often any thread has waited in vain. Who fails, and finds that it has grown meanwhile, may try again: the holder
 * may have waited for the disk. */
uint32_t lock_given_up(void);

/* Waits a little for another thread, the longer the higher the turn. False: it has been long enough (100 ms). */
bool lock_pause(int turn);

/* The same without a lock: no signal handler runs on the calling thread until lock_let_signals. False: they do. */
bool lock_out_signals(uint64_t *before);
void lock_let_signals(uint64_t before);

static inline bool lock_is_held(const struct lock *self) { return __atomic_load_n(&self->held, __ATOMIC_ACQUIRE); }

#pragma GCC visibility pop

#endif
