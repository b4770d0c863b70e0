/* chunks.h — the chunks of counters of a ledger that is looked at again and again.
 * In: its sections. Out: the sites of chunks that changed, to sampling_take. A chunk whose words add up to the same as
 * before is not read further. */
#ifndef MEMSTOW_TOP_CHUNKS_H
#define MEMSTOW_TOP_CHUNKS_H

#include "tools/top/sampling.h"

/* Returns 0, or -1 with the reason in the image. */
int chunks_look(struct sampling *sampling);
/* Forgets all chunks: the next look reads each. */
void chunks_clear(struct sampling *sampling);

#endif
