/* chunks.h — the chunks of counters of a ledger that is looked at again and again.
 * In: the sections of the ledger. Out: the sites of changed chunks, which go to sampling_take. If all chunks of an
 * index have the marks that they had before (snapshot.h), only these marks are read. Index 0 is always read. */
#ifndef MEMSTOW_TOP_CHUNKS_H
#define MEMSTOW_TOP_CHUNKS_H

#include "tools/top/sampling.h"

/* Reads the chunks that have changed since the last call. Returns 0, or -1 with the reason in the image. */
int chunks_look(struct sampling *sampling);
/* Forgets all chunks: the next look reads each. */
void chunks_clear(struct sampling *sampling);

#endif
