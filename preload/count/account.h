/* account.h — one event → the counters of its thread and site.
 * In: allocations and frees from the hooks. Out: growing counters in the ledger, the running totals, the peak.
 * The fast path takes no lock, makes no system call and no atomic read-modify-write.
 *
 * A thread has a slot: a private struct thread here, a snap_thread record and counter chunks in the ledger. Slots
 * outlive their threads and are reused, so that counters only ever grow. Who has no slot (a thread late in its
 * death, a signal handler that interrupts the making of one, no memory) counts in the shared slot, atomically. */
#ifndef MEMSTOW_ACCOUNT_H
#define MEMSTOW_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

enum {
    ACCOUNT_CHUNKS = 1 << 14, /* of SNAP_CHUNK_SITES sites each: two million sites */
    ACCOUNT_THREADS = 1 << 16,
};

struct thread {
    /* Host bytes allocated minus freed since they were last added to the total, plus `quantum`: when it leaves
     * [0, limit] it is time. Not atomic to signals: a lost update shifts the running total, never a counter. */
    uint64_t room, limit, quantum;
    /* Where events are counted whose call stack is not recorded; else NULL. Then `nowhere` is not 0, but so much that
     * no seal is the sum of it (header.h). */
    struct snap_counter *here;
    uint64_t nowhere;
    struct snap_counter *always; /* the same, when that holds for every event; else NULL */
    /* While stacks are sampled: a block of less is counted `here`, and its size taken off; one of as much is a sample
     * (sample.h). Else 0. What a signal handler takes off may be forgotten; but as it is loaded and stored once, it
     * never falls below 1. */
    uint64_t until;
    struct stack *stack;   /* stack.h; NULL until it is needed */
    struct tagged *tagged; /* tags.c; the same */
    /* While a hook has a site that it has not counted at yet: the slot (stack.h) of the outermost such hook. */
    uintptr_t pinned;
    uint32_t quiet; /* the last epoch in which it was seen without */
    uint32_t slot;
    uint32_t chunk_limit;             /* chunks[] is empty from here on */
    uint64_t random;                  /* sample.c */
    uint64_t *chunks[ACCOUNT_CHUNKS]; /* words of snap_chunk */
};

/* Static storage of the thread, so that it is there before anything else and needs no call to reach. Never NULL:
 * account_nobody when the thread has no slot (yet, or any more). */
extern __thread struct thread *account_self __attribute__((tls_model("initial-exec")));
extern struct thread account_nobody;

/* Without call stacks there is one site a tag, and no look-up; while they are sampled, it is that of all other blocks.
 * 0 when each has its stack. Set before any thread has a slot. */
extern uint32_t account_here;

/* True when account_flush is due. */
static inline bool account_move(struct thread *self, uint64_t bytes) {
    self->room += bytes;
    return unlikely(self->room > self->limit);
}

/* The thread's wide counter of a site; NULL when it has none (yet): then account_alloc and account_free count. */
static inline struct snap_counter *account_counter(const struct thread *self, uint32_t site) {
    uint32_t index = site / SNAP_CHUNK_SITES;
    const uint64_t *words = likely(index < ACCOUNT_CHUNKS) ? self->chunks[index] : NULL;
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

/* Counts a block that is about to be given back. True when account_flush is due. */
static inline bool account_free_at(struct thread *self, struct snap_counter *counter, uint64_t bytes) {
    os_add(&counter->free_bytes, bytes);
    os_add(&counter->free_blocks, 1);
    return account_move(self, -bytes);
}

/* The same for any thread and site, flushing included. account_alloc returns the site that it was counted at, which
 * belongs in the block's header. */
uint32_t account_alloc(uint32_t site, uint64_t bytes);
void account_free(uint32_t site, uint64_t bytes);
void account_flush(struct thread *self);

/* Of what was counted at `from`, as allocated or as freed, so much is counted at `to` instead. False: no memory; then
 * nothing has changed. The caller is pinned. */
bool account_shift(uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks, bool freed);
/* Makes room for that at one of the two. Where there is, at both, account_shift of this thread's does not fail. */
bool account_shift_room(uint32_t site);

/* A block that existed before this process was forked off is freed (or, by realloc, taken over). */
void account_free_inherited(uint64_t bytes);

/* Mapped memory: counted in a slot of its own by whoever holds the table of mappings, one thread at a time. */
void account_map(uint32_t site, uint64_t bytes, uint64_t blocks);
void account_unmap(uint32_t site, uint64_t bytes, uint64_t blocks);
bool account_shift_mapped(uint32_t from, uint32_t to, uint64_t bytes, uint64_t blocks);

/* After ledger_begin. */
void account_begin(void);
/* The highest running total since the last call that began anew. */
uint64_t account_peak(bool anew);
/* Adds to the peak what threads hold back, when the total is higher with it. */
void account_raise_peak(void);
/* In a forked child, before ledger_abandon: the bytes that it inherited. Forgets every slot. */
uint64_t account_abandon(void);

/* The caller's slot, made if need be; SNAP_THREAD_SHARED when there is none to be had. */
uint32_t account_thread_slot(void);
/* At a thread's end. */
void account_thread_end(void);
/* At the end of the process: adds what threads still hold back, notes their names. */
void account_finish(void);

/* --- for counters.c and pin.c --- */

/* Slots are numbered from 0; NULL: this one is just being made. */
uint32_t account_slots(void);
struct thread *account_at(uint32_t slot);
struct snap_thread *account_record(uint32_t slot);
bool account_has_ended(uint32_t slot); /* its thread; nobody has the slot now */

#pragma GCC visibility pop

#endif
