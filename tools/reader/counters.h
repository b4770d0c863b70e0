/* counters.h — adds up the counters of a ledger, which each thread keeps by itself, to totals by site and class (host
 * or mapped memory), and to sums by thread; counters.c says how.
 * In: the sections of a file, which is treated as hostile, and to which its process may be writing. Out: totals in the
 * image; each has the figures of one moment, or is marked as inexact. */
#ifndef MEMSTOW_COUNTERS_H
#define MEMSTOW_COUNTERS_H

#include "tools/reader/reader.h"

/* Call these in this order. Those that return an int return 0, or -1 with image->error set. counters_find_wide finds
 * the sections of wide counters (struct wide_counters). counters_tally makes the totals. counters_name_sites gives each
 * total the tag, stack and module of its site. Then the other tables are read. After that, counters_link_blocks
 * replaces the site of each large block and mapping by 1 + the index of its total, and counters_sum_threads makes the
 * sums by thread. */
int counters_find_wide(struct reader *reader);
int counters_tally(struct reader *reader);
int counters_name_sites(struct reader *reader);
int counters_sum_threads(struct reader *reader);
void counters_link_blocks(struct reader *reader);
/* How many chunks of counters (struct counters_chunk) the sections have that the last reader_scan found. */
uint64_t counters_chunks(const struct reader *reader);

/* --- for memstow top, which reads chunks again once they have changed --- */

/* A chunk: the counters of one thread for SNAP_CHUNK_SITES sites, from the site index * SNAP_CHUNK_SITES on. */
struct counters_chunk {
    uint64_t offset;
    uint32_t index, thread; /* thread: its slot + 1 */
};

/* The sums of all threads' counters, for the sites of one index. inexact: whether the site's counters changed during
 * each reading. */
struct counters_sites {
    struct snap_counter host[SNAP_CHUNK_SITES], mapped[SNAP_CHUNK_SITES];
    uint8_t inexact[SNAP_CHUNK_SITES];
};

/* Sums `count` chunks into *sites: the chunks of all threads for one index. Returns 0 or -1. */
int counters_settle(struct reader *reader, const struct counters_chunk *chunks, size_t count,
                    struct counters_sites *sites);
/* *sum: the sum over all sites of a chunk. Returns 0 or -1. */
int counters_sum_chunk(struct reader *reader, const struct counters_chunk *chunk, struct snap_counter *sum);

#endif
