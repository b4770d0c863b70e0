/* counters.h — the counters of a ledger → totals by site and class, and by thread; counters.c says how. */
#ifndef MEMSTOW_COUNTERS_H
#define MEMSTOW_COUNTERS_H

#include "tools/reader/reader.h"

/* In this order: where the wide counters are; totals by site; what the sites are; and, once the tables are there,
 * totals by thread, and a total (1 + index) in place of the site of each large block and mapping. */
int counters_find_wide(struct reader *reader);
int counters_tally(struct reader *reader);
int counters_name_sites(struct reader *reader);
int counters_sum_threads(struct reader *reader);
void counters_link_blocks(struct reader *reader);
uint64_t counters_chunks(const struct reader *reader);

#endif
