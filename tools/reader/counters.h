/* counters.h — turns the counters of a ledger into totals by site and class, and by thread; counters.c says how.
 * In: the sections of a file, which is treated as hostile, and to which its process may be writing. Out: totals in the
 * image, each of one moment or marked as inexact. */
#ifndef MEMSTOW_COUNTERS_H
#define MEMSTOW_COUNTERS_H

#include "tools/reader/reader.h"

/* Call them in this order: find the wide counters; make totals by site; name the sites; then, once the tables are read,
 * sum by thread, and replace the site of each large block and mapping by 1 + the index of its total. They return 0 or
 * -1. */
int counters_find_wide(struct reader *reader);
int counters_tally(struct reader *reader);
int counters_name_sites(struct reader *reader);
int counters_sum_threads(struct reader *reader);
void counters_link_blocks(struct reader *reader);
/* How many chunks of counters the sections have now. */
uint64_t counters_chunks(const struct reader *reader);

#endif
