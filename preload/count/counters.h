/* counters.h — each thread's counters at each site, in the ledger. In: a thread's slot, a site, an event. Out: words
 * and wide counters (snapshot.h), and sums of them over all slots. A slot of its own is written to by its thread and
 * that thread's signal handlers; the shared one by any thread. No lock. */
#ifndef MEMSTOW_COUNTERS_H
#define MEMSTOW_COUNTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/count/thread.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Counts one block that was allocated or is freed. A thread for whose counters there is no memory, and thread_nobody,
 * count in the shared slot. Returns the site that it was counted at: this one, or SNAP_SITE_UNKNOWN. */
uint32_t counters_add(struct thread *self, uint32_t site, uint64_t bytes, bool freed);

/* The slot's wide counter of a site, made if need be; NULL: there is no room. */
struct snap_counter *counters_wide(struct thread *self, uint32_t site);

/* `sum` and all that the slot counted. */
struct snap_counter counters_of_thread(const struct thread *self, struct snap_counter sum);

/* For the picture of the peak: live bytes and blocks of a site over all slots, as of about now. */
struct live {
    uint64_t bytes, blocks;
};
struct live counters_site_live(uint32_t site);

/* Sums over all slots for SNAP_CHUNK_SITES sites. Frees are read first: if they equal the allocations, nothing is live,
 * or was in between. */
void counters_sum(uint32_t chunk, struct snap_counter sums[SNAP_CHUNK_SITES]);

/* Moves the counts of all slots at site i of the chunk to site to[i]; where to[i] is 0, they stay. No thread counts at
 * site i any more. Each thread's own sums stay known. */
void counters_move(uint32_t chunk, const uint32_t to[SNAP_CHUNK_SITES]);

/* Memory that counters take. */
uint64_t counters_bytes(void);

void counters_begin(void);
/* In a forked child: a slot's words are none of its. */
void counters_forget(struct thread *self);

#pragma GCC visibility pop

#endif
