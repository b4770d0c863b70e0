/* counters.h — turns the counters of a ledger into totals by site and class, and by thread; counters.c says how.
 * In: the sections of a file, which is treated as hostile, and to which its process may be writing. Out: totals in the
 * image, each of one moment or marked as inexact. */
#ifndef MEMSTOW_COUNTERS_H
#define MEMSTOW_COUNTERS_H

#include "tools/reader/reader.h"

/* Call these in this order; they return 0 or -1. counters_find_wide finds the sections of wide counters. counters_tally
 * makes totals by site. counters_name_sites gives each total the tag, stack and module of its site. Once the tables are
 * read, counters_sum_threads sums by thread, and counters_link_blocks replaces the site of each large block and mapping
 * by 1 + the index of its total. */
int counters_find_wide(struct reader *reader);
int counters_tally(struct reader *reader);
int counters_name_sites(struct reader *reader);
int counters_sum_threads(struct reader *reader);
void counters_link_blocks(struct reader *reader);
/* How many chunks of counters the sections have now. */
uint64_t counters_chunks(const struct reader *reader);

/* --- for a view that stays open: it reads chunks again once they have changed --- */

/* Where the counters of one thread are, for SNAP_CHUNK_SITES sites from index * SNAP_CHUNK_SITES on. */
struct counters_chunk {
    uint64_t offset;
    uint32_t index, thread; /* thread: slot + 1 */
};

/* The counters of the sites of one index, summed over the threads. inexact: the site's counters changed during each
 * reading. */
struct counters_sites {
    struct snap_counter host[SNAP_CHUNK_SITES], mapped[SNAP_CHUNK_SITES];
    uint8_t inexact[SNAP_CHUNK_SITES];
};

/* Sums `count` chunks: those of all threads for one index. Returns 0 or -1. */
int counters_settle(struct reader *reader, const struct counters_chunk *chunks, size_t count,
                    struct counters_sites *sites);
/* The sum of all sites of a chunk. Returns 0 or -1. */
int counters_sum_chunk(struct reader *reader, const struct counters_chunk *chunk, struct snap_counter *sum);

#endif
