/* mappings.h — the program's own mappings, one by one, as ranges that can be split, moved and given back in part. In:
 * calls of the mmap family, from the hooks, on any thread. Out: MAPPING records and the counters of mapped memory. No
 * thread waits: an event is queued, and the thread that finds the table free applies all that is queued. */
#ifndef MEMSTOW_MAPPINGS_H
#define MEMSTOW_MAPPINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* A new mapping; whatever it covers is gone. Of the break, every byte counts; other lengths are rounded up to pages. */
void mappings_add(uintptr_t address, uint64_t length, enum snap_mapping_kind kind, bool shared, uint32_t site);

/* A mapping of the same kind as the one at `source`, which stays (mremap of length 0, MREMAP_DONTUNMAP). */
void mappings_copy(uintptr_t source, uintptr_t address, uint64_t length, uint32_t site);

/* Before memory is given back or moved: takes the range out of the table, so that nobody else's new mapping at
 * the same address is mistaken for it. Ends with exactly one of: */
uint32_t mappings_take(uintptr_t address, uint64_t length);             /* not rounded */
void mappings_drop(uint32_t ticket);                                    /* it is gone */
void mappings_put(uint32_t ticket, uintptr_t address, uint64_t length); /* it is here now */
void mappings_restore(uint32_t ticket);                                 /* it was refused: all is as it was */

/* Access to the range was given or withdrawn: address space without access is not live memory. */
void mappings_protect(uintptr_t address, uint64_t length, bool accessible);

/* Gives the range, as far as it is the program's, to a model or custom (0: nobody) from now on: 0; -ENXIO: part of it
 * is in no mapping; -ENOMEM: it cannot be noted. */
int mappings_assign(uintptr_t address, uint64_t length, uint32_t model);

/* The mapping that the address lies in, as its record is at the moment; false: in none that counts as live. */
bool mappings_find(uintptr_t address, struct snap_mapping *out);

void mappings_advise(uintptr_t address, uint64_t length, int advice);

/* Calls visit for each record in use; at exit. */
void mappings_visit_records(void (*visit)(struct snap_mapping *record, void *context), void *context);

#pragma GCC visibility pop

#endif
