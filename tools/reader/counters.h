/* counters.h — the counters of a ledger → totals by site and class, and by thread; counters.c says how. */
#ifndef MEMSTOW_COUNTERS_H
#define MEMSTOW_COUNTERS_H

#include "tools/reader/reader.h"

/* Call them in this order: find the wide counters; make totals by site; name the sites; then, once the tables are read,
 * sum by thread, and replace the site of each large block and mapping by 1 + the index of its total. */
int counters_find_wide(struct reader *reader);
int counters_tally(struct reader *reader);
int counters_name_sites(struct reader *reader);
int counters_sum_threads(struct reader *reader);
void counters_link_blocks(struct reader *reader);
uint64_t counters_chunks(const struct reader *reader);

#endif
