/* source.h — CUPTI as the source of a ledger, in a program without libmemstow.so.
 * In: blocks that come and go, from seen.h. Out: the ledger of this process, in the usual form. It has the sections of
 * CUDA memory, and nothing of malloc or mmap. */
#ifndef MEMSTOW_CUPTI_SOURCE_H
#define MEMSTOW_CUPTI_SOURCE_H

#include <stdbool.h>

#include "preload/life/cupti.h"

#pragma GCC visibility push(hidden)

/* Begins the ledger. From now on the blocks of seen.h are counted in it. False: this process is to have no ledger,
 * or it has one already, or there is no memory. */
bool source_begin(struct cupti_sections *sections);
/* Counts records that were lost, or could not be read. */
void source_lost(uint64_t records);
/* Ends the ledger. `quick`: the process ends by quick_exit. */
void source_end(bool quick);

#pragma GCC visibility pop

#endif
