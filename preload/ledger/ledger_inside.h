/* ledger_inside.h — makes new sections of the ledger, for the files in preload/ledger/.
 * In: calls of series.c and ledger_strings.c, which must make the section visible to readers before the next section is
 * made. Out: the section. Files in other folders do not include this one: they use ledger_section. */
#ifndef MEMSTOW_LEDGER_INSIDE_H
#define MEMSTOW_LEDGER_INSIDE_H

#include <stdint.h>

#include "preload/base/lock.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Held while a section is made. */
extern struct lock ledger_growing;
/* Makes a section of zeroed records. The section's `count` is 0. The caller holds ledger_growing. NULL: there is no
 * memory. */
struct snap_section *ledger_carve(uint32_t type, uint32_t record_size, uint64_t capacity, uint64_t first);

#pragma GCC visibility pop

#endif
