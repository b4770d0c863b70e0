/* slots.h — tables of slots, most of which are empty: large blocks, mappings, CUDA blocks, origins.
 * In: the sections of a file, whose process may write to the slots meanwhile. Out: the slots that are in use. It never
 * takes a slot that was being written. */
#ifndef MEMSTOW_SLOTS_H
#define MEMSTOW_SLOTS_H

#include "tools/reader/reader.h"

/* The large blocks, mappings and CUDA blocks of the image: 0 or -1. */
int slots_load(struct reader *reader);
/* Where threads were started, descriptors opened and shared memory mapped, in a ledger: 0 or -1. A snapshot has none.
 */
int slots_load_origins(struct reader *reader);

#endif
