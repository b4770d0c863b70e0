/* account_fast.h — the part of the accounts that malloc and free need.
 * In: a thread that has a slot, and one of the thread's counters. Out: the same as account.h. Nothing here but
 * account_flush takes a lock, makes a system call, or does an atomic read-modify-write. Only count/ and the hooks' fast
 * path may include this file (tests/build/layers). */
#ifndef MEMSTOW_ACCOUNT_FAST_H
#define MEMSTOW_ACCOUNT_FAST_H

#include "preload/count/account.h"
#include "preload/count/counters.h"
#include "preload/count/thread_inside.h"

#pragma GCC visibility push(hidden)

/* Adds bytes to those that the thread holds back from the running total (thread_inside.h). True: account_flush is
 * due. */
static inline bool account_move(struct thread *self, uint64_t bytes) {
    self->drift += bytes;
    return unlikely(self->drift > self->limit);
}

void account_flush(struct thread *self);

/* The thread's wide counter of a site. The counter is NULL if the thread has none yet. Then call account_alloc or
 * account_free. */
static inline struct counters_place account_place(const struct thread *self, uint32_t site) {
    uint32_t index = site / SNAP_CHUNK_SITES;
    uint64_t *words = likely(index < THREAD_CHUNKS) ? self->chunks[index] : NULL;
    if (unlikely(!words)) return (struct counters_place){NULL, NULL};
    uint64_t word = os_load(&words[site % SNAP_CHUNK_SITES]);
    if (unlikely(!os_take_highest_bit(&word))) return (struct counters_place){NULL, NULL};
    struct snap_counter *counter = (struct snap_counter *)word;
    if (!counter) __builtin_unreachable();
    return (struct counters_place){counter, counters_mark_of(words)};
}

/* account_alloc_* count a block that now exists, account_free_* a block that is about to be freed. True: account_flush
 * is due. `at`: the answer of account_place for this thread. `here`: the thread's counter for events without a call
 * stack. This counter needs no mark: its site is in the first chunk, which readers always read. */
static inline bool account_alloc_here(struct thread *self, struct snap_counter *here, uint64_t bytes) {
    os_add(&here->alloc_bytes, bytes);
    os_add(&here->alloc_blocks, 1);
    return account_move(self, bytes);
}

static inline bool account_free_here(struct thread *self, struct snap_counter *here, uint64_t bytes) {
    os_add(&here->free_bytes, bytes);
    os_add(&here->free_blocks, 1);
    return account_move(self, -bytes);
}

/* Readers must see the new mark only after the new counter (snapshot.h). The order of the lines is enough, because x86
 * makes stores visible to other threads in their order. */
static inline bool account_alloc_at(struct thread *self, struct counters_place at, uint64_t bytes) {
    os_add(&at.counter->alloc_bytes, bytes);
    os_add(&at.counter->alloc_blocks, 1);
    os_add(at.mark, 1);
    return account_move(self, bytes);
}

static inline bool account_free_at(struct thread *self, struct counters_place at, uint64_t bytes) {
    os_add(&at.counter->free_bytes, bytes);
    os_add(&at.counter->free_blocks, 1);
    os_add(at.mark, 1);
    return account_move(self, -bytes);
}

#pragma GCC visibility pop

#endif
