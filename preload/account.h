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

#include "os.h"
#include "snapshot.h"

#pragma GCC visibility push(hidden)

enum {
    ACCOUNT_CHUNKS = 1 << 14, /* of SNAP_CHUNK_SITES sites each: two million sites */
    ACCOUNT_THREADS = 1 << 16,
};

struct thread {
    /* Host bytes allocated minus freed since they were last added to the total, plus `quantum`: when it leaves
     * [0, limit] it is time. Not atomic to signals: a lost update shifts the running total, never a counter. */
    uint64_t room, limit, quantum;
    /* Where all events are counted while call stacks are not recorded; else NULL, and a word that no header has. */
    struct snap_counter *here;
    uint64_t here_word;  /* that site, as a header's word has it */
    struct stack *stack; /* stack.h; NULL until it is needed */
    uint32_t slot;
    uint32_t chunk_limit; /* chunks[] is empty from here on */
    struct snap_counter *chunks[ACCOUNT_CHUNKS];
};

/* Static storage of the thread, so that it is there before anything else and needs no call to reach. Never NULL:
 * account_nobody when the thread has no slot (yet, or any more). */
extern __thread struct thread *account_self __attribute__((tls_model("initial-exec")));
extern struct thread account_nobody;

/* Without call stacks there is one site a tag, and no look-up; 0 otherwise. Set before any thread has a slot. */
extern uint32_t account_here;

/* True when account_flush is due. */
static inline bool account_move(struct thread *self, uint64_t bytes) {
    self->room += bytes;
    return unlikely(self->room > self->limit);
}

/* The thread's counter of a site, or NULL: then account_alloc and account_free make it. */
static inline struct snap_counter *account_counter(const struct thread *self, uint32_t site) {
    uint32_t index = site / SNAP_CHUNK_SITES;
    struct snap_counter *chunk = likely(index < ACCOUNT_CHUNKS) ? self->chunks[index] : NULL;
    return likely(chunk) ? chunk + site % SNAP_CHUNK_SITES : NULL;
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

/* A block that existed before this process was forked off is freed (or, by realloc, taken over). */
void account_free_inherited(uint64_t bytes);

/* Mapped memory: counted in a slot of its own by whoever holds the table of mappings, one thread at a time. */
void account_map(uint32_t site, uint64_t bytes, uint64_t blocks);
void account_unmap(uint32_t site, uint64_t bytes, uint64_t blocks);

/* After ledger_begin. */
void account_begin(void);
/* In a forked child, before ledger_abandon: the bytes that it inherited. Forgets every slot. */
uint64_t account_abandon(void);

/* The caller's slot, made if need be; SNAP_THREAD_SHARED when there is none to be had. */
uint32_t account_thread_slot(void);
/* At a thread's end. */
void account_thread_end(void);
/* At the end of the process: adds what threads still hold back, notes their names. */
void account_finish(void);

/* Memory that counters take. */
uint64_t account_bytes(void);

/* For the picture of the peak: live bytes and blocks of a site over all slots, as of about now. */
struct account_live {
    uint64_t bytes, blocks;
};
struct account_live account_site_live(uint32_t site);
uint32_t account_slots(void);

#pragma GCC visibility pop

#endif
