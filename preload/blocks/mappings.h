/* mappings.h — the program's own mappings, as ranges that can be split, moved and given back in part.
 * In: calls of the mmap family, from the hooks, on any thread. Out: MAPPING records and the counters of mapped memory.
 * No thread waits for the table: each thread queues an event, and a thread that finds the table free applies all queued
 * events. If no event is free, a thread waits for one, but only for a limited time. */
#ifndef MEMSTOW_MAPPINGS_H
#define MEMSTOW_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Adds a new mapping, which replaces whatever was in its range. Lengths are rounded up to pages, except for the program
 * break (brk), where each byte counts. */
void mappings_add(uintptr_t address, uint64_t length, enum snap_mapping_kind kind, bool shared, uint32_t site);

/* Adds a new mapping of the same kind as the mapping at `source`, which stays (mremap of length 0,
 * MREMAP_DONTUNMAP). */
void mappings_copy(uintptr_t source, uintptr_t address, uint64_t length, uint32_t site);

/* Takes a range out of the table, before the memory is unmapped or moved. Otherwise another thread's new mapping at the
 * same address could be mistaken for this range. Returns a ticket (not that of a request). Exactly one of drop, put and
 * restore must follow. */
uint32_t mappings_take(uintptr_t address, uint64_t length);             /* the length is not rounded */
void mappings_drop(uint32_t ticket);                                    /* the range is gone */
void mappings_put(uint32_t ticket, uintptr_t address, uint64_t length); /* the range was moved to this address */
void mappings_restore(uint32_t ticket);                                 /* the call failed: the range is in the table
                                                                         * again */

/* Call it when access to the range was given or withdrawn. Address space without access is not live memory. */
void mappings_protect(uintptr_t address, uint64_t length, bool accessible);

/* Assigns the range to a model or custom, or to nobody if `model` is 0. Returns 0, or -ENXIO if part of the range is in
 * no mapping of the program, or -ENOMEM if there is no memory to record the change. */
int mappings_assign(uintptr_t address, uint64_t length, uint32_t model);

/* The mapping that contains the address, as its record is now. False: no live mapping contains it. Mappings of files
 * and memory without access are not live. */
bool mappings_find(uintptr_t address, struct snap_mapping *out);

/* Call it when the program has given this advice for the range (madvise). */
void mappings_advise(uintptr_t address, uint64_t length, int advice);

/* Calls visit for each record in use. It is for the end of the process. */
void mappings_visit_records(void (*visit)(struct snap_mapping *record, void *context), void *context);

#pragma GCC visibility pop

#endif
