/* counters.h — adds up the counters of a ledger. Each thread has counters of its own. Their sums are totals by site and
 * class (host or mapped memory), and sums by thread. counters.c says how.
 * In: the sections of a file, which is treated as hostile, and to which its process may be writing. Out: totals in the
 * image; each has the figures of one moment, or is marked as inexact. */
#ifndef MEMSTOW_READER_COUNTERS_H
#define MEMSTOW_READER_COUNTERS_H

#include "tools/reader/reader.h"

#include <stdbool.h>

/* The steps of the reading. First, counters_find_wide finds the sections of wide counters (struct wide_counters). Then
 * counters_tally makes the totals. Then counters_name_sites gives each total the tag, stack and module of its site.
 * Then the caller reads the other tables. Last, counters_link_blocks replaces the site of each large block and mapping
 * by 1 + the index of its total, and counters_sum_threads makes the sums by thread. A function that returns int
 * returns 0, or -1 with image->error set. */
int counters_find_wide(struct reader *reader);
int counters_tally(struct reader *reader);
int counters_name_sites(struct reader *reader);
int counters_sum_threads(struct reader *reader);
void counters_link_blocks(struct reader *reader);
/* The number of chunks of counters (struct counters_chunk) in the sections that the last reader_scan found. */
uint64_t counters_chunks(const struct reader *reader);

/* --- for memstow top, which reads chunks again once they have changed --- */

/* A chunk: the counters of one thread for SNAP_CHUNK_SITES sites. The first of these sites has the id
 * index * SNAP_CHUNK_SITES. offset: where the chunk is in the file. */
struct counters_chunk {
    uint64_t offset;
    uint32_t index, thread; /* thread: its slot + 1 */
    bool marked;            /* the chunk has a mark (snapshot.h), which older libraries do not write */
};
/* A chunk of a section, whose thread and index have not been read yet. */
struct counters_chunk counters_chunk_at(const struct section *section, uint64_t record);

/* Whether the chunk's mark changes with each event. It does not in chunks of index 0 (snapshot.h), and chunks of older
 * libraries have no mark. */
bool counters_chunk_tells(const struct counters_chunk *chunk);
int counters_mark(const struct reader *reader, const struct counters_chunk *chunk, uint64_t *mark); /* 0 or -1 */

/* The sums of all threads' counters for the sites of one index (struct counters_chunk). inexact[i] is 1 if the counters
 * of the site at i changed during each try to read them. */
struct counters_sites {
    struct snap_counter host[SNAP_CHUNK_SITES], mapped[SNAP_CHUNK_SITES];
    uint8_t inexact[SNAP_CHUNK_SITES];
};

/* *sites: the sums of `count` chunks, which must be the chunks of all threads for one index. sums[i]: the sum of chunk
 * i over its sites; `sums` may be NULL. Returns 0 or -1. */
int counters_settle(struct reader *reader, const struct counters_chunk *chunks, size_t count,
                    struct counters_sites *sites, struct snap_counter *sums);
/* *sum: the sum over all sites of a chunk. Returns 0 or -1. */
int counters_sum_chunk(struct reader *reader, const struct counters_chunk *chunk, struct snap_counter *sum);

#endif
