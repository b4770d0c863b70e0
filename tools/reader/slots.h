/* slots.h — reads those tables of a ledger whose slots are mostly empty: large blocks, mappings, CUDA blocks, origins.
 * In: the sections of a file, whose process may be writing to the slots. Out: the slots that are in use. It never takes
 * a slot that is being written. */
#ifndef MEMSTOW_READER_SLOTS_H
#define MEMSTOW_READER_SLOTS_H

#include "tools/reader/reader.h"

/* Loads the large blocks, mappings and CUDA blocks of the image. Returns 0 or -1. */
int slots_load(struct reader *reader);
/* Loads the origins of a ledger: where threads were started, descriptors opened and shared memory mapped. A snapshot
 * has none. Returns 0 or -1. */
int slots_load_origins(struct reader *reader);

#endif
