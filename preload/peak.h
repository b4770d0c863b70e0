/* peak.h — what the ledger looked like when the process held most.
 * In: the running total, whenever it was noted. Out: one of the two halves of the ledger's PEAK records. */
#ifndef MEMSTOW_PEAK_H
#define MEMSTOW_PEAK_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Copies a bounded slice once the total has fallen clearly below a peak that has no picture yet. Whoever comes
 * while another thread copies goes on its way. */
void peak_watch(uint64_t total);
/* Completes a copy that has begun: at the end of the process. */
void peak_finish(void);
void peak_abandon(void);

#pragma GCC visibility pop

#endif
