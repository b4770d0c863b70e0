/* account_fast.h — the part of the accounts that malloc and free need.
 * In: a thread that has a slot, one of its counters. Out: the same as account.h. It takes no lock, makes no system call
 * and no atomic read-modify-write. Only count/ and the hooks' fast path may include it (tests/build/layers). */
#ifndef MEMSTOW_ACCOUNT_FAST_H
#define MEMSTOW_ACCOUNT_FAST_H

#include "preload/count/account.h"
#include "preload/count/thread_inside.h"

#pragma GCC visibility push(hidden)

/* Adds bytes to those that the thread holds back from the running total (thread_inside.h). True: account_flush is
 * due. */
static inline bool account_move(struct thread *self, uint64_t bytes) {
    self->drift += bytes;
    return unlikely(self->drift > self->limit);
}

void account_flush(struct thread *self);

/* The thread's wide counter (counters.h) of a site. NULL: the thread has none yet; then call account_alloc or
 * account_free. */
static inline struct snap_counter *account_counter(const struct thread *self, uint32_t site) {
    uint32_t index = site / SNAP_CHUNK_SITES;
    const uint64_t *words = likely(index < THREAD_CHUNKS) ? self->chunks[index] : NULL;
    if (unlikely(!words)) return NULL;
    uint64_t word = os_load(&words[site % SNAP_CHUNK_SITES]);
    if (unlikely(!(word & SNAP_WIDE_BIT))) return NULL;
    struct snap_counter *counter = (struct snap_counter *)(word & ~SNAP_WIDE_BIT);
    if (!counter) __builtin_unreachable();
    return counter;
}

/* Counts a block that now exists. True when account_flush is due. */
static inline bool account_alloc_at(struct thread *self, struct snap_counter *counter, uint64_t bytes) {
    os_add(&counter->alloc_bytes, bytes);
    os_add(&counter->alloc_blocks, 1);
    return account_move(self, bytes);
}

/* Counts a block that is about to be freed. True when account_flush is due. */
static inline bool account_free_at(struct thread *self, struct snap_counter *counter, uint64_t bytes) {
    os_add(&counter->free_bytes, bytes);
    os_add(&counter->free_blocks, 1);
    return account_move(self, -bytes);
}

#pragma GCC visibility pop

#endif
