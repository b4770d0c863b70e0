/* source.h — CUPTI as the source of a ledger, in a program that libmemstow.so is not preloaded into.
 * In: the blocks that seen.h says come and go. Out: the ledger of this process, in the same form as any: its sections
 * of CUDA memory. Nothing of the host's memory is in it. */
#ifndef MEMSTOW_CUPTI_SOURCE_H
#define MEMSTOW_CUPTI_SOURCE_H

#include <stdbool.h>

#include "preload/life/cupti.h"

#pragma GCC visibility push(hidden)

/* Begins the ledger; what seen.h says is counted there from now on. False: this process is not to have one, or has one
 * already, or there is no room. */
bool source_begin(struct cupti_place *place);
/* So many records could not be had, or not be read. */
void source_lost(uint64_t records);
/* The ledger ends. quick: by quick_exit. */
void source_end(bool quick);

#pragma GCC visibility pop

#endif
