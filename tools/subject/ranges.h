/* ranges.h — what address ranges are used for, according to the ledger: thread stacks, mappings, memstow's own memory,
 * and memory that memstow holds for devices. In: an image. Out: the use of an address, and where uses change. */
#ifndef MEMSTOW_RANGES_H
#define MEMSTOW_RANGES_H

#include "tools/image/image.h"

/* OWN: memstow's own memory. BACKUP: memory that was moved out of a device. BUFFER: memstow's pinned buffers for
 * copies. MAPPING: a mapping of the program. STACK: the stack of a thread. */
enum use { USE_UNKNOWN, USE_OWN, USE_BACKUP, USE_BUFFER, USE_MAPPING, USE_STACK, USE_KINDS };

struct use_range {
    uint64_t start, end;
    const struct snap_mapping *mapping; /* set for USE_MAPPING */
};

struct ranges {
    struct use_range *list[USE_KINDS]; /* each sorted by start */
    size_t count[USE_KINDS];
    uint64_t *edges; /* every start and end, sorted */
    size_t edge_count;
};

int ranges_collect(struct ranges *ranges, const struct image *image); /* returns 0, or -1: no memory */
void ranges_clear(struct ranges *ranges);
/* Returns the use of the address. *range becomes the range that contains the address, or NULL for USE_UNKNOWN. If
 * several ranges contain the address, the use that comes first in the enum counts. */
enum use ranges_use(const struct ranges *ranges, uint64_t address, const struct use_range **range);
/* The first edge after the address, at most `limit`. */
uint64_t ranges_next_edge(const struct ranges *ranges, uint64_t address, uint64_t limit);

#endif
