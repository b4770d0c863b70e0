/* counters.h — the counters of each thread at each site (call stack and owners), in the ledger.
 * In: a thread's slot (its entry in the table of threads), a site, an event. Out: the counts of each site, and their
 * sums over all slots. The counts of a site with few events are in one word. The counts of other sites are in a wide
 * counter (snapshot.h). Only a thread, its signal handlers and counters_move write to the thread's slot. Any thread may
 * write to the shared slot. Counting takes no lock, except to make a counter (series.h). */
#ifndef MEMSTOW_COUNTERS_H
#define MEMSTOW_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/count/thread.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Counts one allocated or freed block. thread_nobody, and a thread without memory for a counter, count in the shared
 * slot. Returns the site at which it counted: `site` or SNAP_SITE_UNKNOWN. */
uint32_t counters_add(struct thread *self, uint32_t site, uint64_t bytes, bool freed);

/* A wide counter, and the mark of its chunk (snapshot.h). Whoever changes the counter adds 1 to the mark afterwards. */
struct counters_place {
    struct snap_counter *counter;
    uint64_t *mark;
};

/* The mark of the chunk that has these words. */
static inline uint64_t *counters_mark_of(uint64_t *words) {
    return words + (offsetof(struct snap_chunk, mark) - offsetof(struct snap_chunk, words)) / sizeof *words;
}

/* The slot's wide counter of a site, which is made if it does not exist. The counter is NULL if there is no memory. */
struct counters_place counters_wide(struct thread *self, uint32_t site);

/* Returns `sum` plus everything that the slot counted. */
struct snap_counter counters_of_thread(const struct thread *self, struct snap_counter sum);

/* Live bytes and blocks of a site over all slots, about now. The picture of the peak needs it. */
struct live {
    uint64_t bytes, blocks;
};
struct live counters_site_live(uint32_t site);

/* Sums over all slots, for the SNAP_CHUNK_SITES sites of a chunk. It reads the frees before the allocations. So if
 * frees and allocations are equal at a site, no block of the site was live when the frees were read, and none came
 * between the two readings. */
void counters_sum(uint32_t chunk, struct snap_counter sums[SNAP_CHUNK_SITES]);

/* Moves the counts of all slots from site i of the chunk to site to[i]. If to[i] is 0, the counts stay. The caller
 * makes sure that no thread counts at site i any more. The sum of each thread over all sites stays what it was. */
void counters_move(uint32_t chunk, const uint32_t to[SNAP_CHUNK_SITES]);

/* The memory of all counters, in bytes. */
uint64_t counters_bytes(void);

void counters_begin(void);
/* In a forked child: the slot forgets its words, which are the parent's. */
void counters_forget(struct thread *self);

#pragma GCC visibility pop

#endif
