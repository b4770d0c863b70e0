/* chunks.h — the chunks of counters of a ledger that is looked at again and again.
 * In: the sections of the ledger. Out: the sites of changed chunks, which go to sampling_take. The counters of an index
 * are read only if the mark of one of its chunks has changed (snapshot.h). Index 0 is always read, and so is every
 * index after the end of the process. */
#ifndef MEMSTOW_TOP_CHUNKS_H
#define MEMSTOW_TOP_CHUNKS_H

#include "tools/top/sampling.h"

/* Reads the chunks that have changed since the last call. Returns 0, or -1 with the reason in the image. */
int chunks_look(struct sampling *sampling);
/* Forgets all chunks: the next look reads each. */
void chunks_clear(struct sampling *sampling);

#endif
