/* chunks.h — the chunks of counters of a ledger that is looked at again and again.
 * In: the sections of the ledger. Out: the sites of changed chunks, which go to sampling_take. A chunk has the counters
 * of one thread at SNAP_CHUNK_SITES neighbouring sites, and its index says which sites these are. If the mark of a
 * chunk has changed (snapshot.h), all chunks with the same index are read. Chunks with index 0 are read at each look.
 * After the end of the process all chunks are read. */
#ifndef MEMSTOW_TOP_CHUNKS_H
#define MEMSTOW_TOP_CHUNKS_H

#include "tools/top/sampling.h"

/* Reads the chunks that have changed since the last call. Returns 0, or -1 with the reason in the image. */
int chunks_look(struct sampling *sampling);
/* Forgets all chunks: the next look reads each. */
void chunks_clear(struct sampling *sampling);

#endif
