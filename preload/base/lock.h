/* lock.h — locks for work that only one thread at a time may do, and that must not be left half done.
 * In: a thread that wants to do such work. Out: whether the thread may do it, now or after a wait. While a
 * thread holds a lock, no signal handler runs on it: a handler could leave the work half done by longjmp, or wait for a
 * lock of its own thread. Blocking signals takes two system calls, so locks are for rare work. In a sandbox (seccomp)
 * these calls are not made, so handlers do run. */
#ifndef MEMSTOW_LOCK_H
#define MEMSTOW_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* All zero: no thread holds the lock. */
struct lock {
    uint32_t held;
    bool blocked; /* the holder has blocked signals, and restores the mask `signals` at the end */
    uint64_t signals;
};

/* Takes the lock if it is free. False: a thread holds it. That thread may be the calling one, which a signal handler
 * has interrupted. */
bool lock_try(struct lock *self);
/* Waits for the lock, but no longer than lock_pause allows. False: the lock is still held. Its holder may be stopped,
 * or may be a thread of another process. */
bool lock_wait(struct lock *self);
/* As lock_wait, but waits as long as it takes: for work that must be finished. */
void lock_hold(struct lock *self);
void lock_let_go(struct lock *self);
/* Lets go of the lock, but signal handlers stay kept off the calling thread until it calls lock_let_signals(*before).
 * False: handlers do run. */
bool lock_pass_on(struct lock *self, uint64_t *before);
/* How many calls of lock_wait have failed, in all threads. If an operation failed and this number grew meanwhile, the
 * reason may be a lock whose holder waited for the disk, so it is worth a second try. */
uint32_t lock_given_up(void);

/* Waits a little for another thread: the first turns spin, later turns sleep. `turn` counts from 0. False: all turns
 * together have been long enough (100 ms). */
bool lock_pause(int turn);

/* Blocks signals on the calling thread, except signals of faults. lock_let_signals(*before) ends this. No lock is taken
 * or held. False: the signals are not blocked. */
bool lock_out_signals(uint64_t *before);
void lock_let_signals(uint64_t before);

static inline bool lock_is_held(const struct lock *self) { return __atomic_load_n(&self->held, __ATOMIC_ACQUIRE); }

#pragma GCC visibility pop

#endif
