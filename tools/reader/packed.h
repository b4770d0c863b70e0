/* packed.h — packs and unpacks SNAP_TOTALS, the totals of a snapshot. */
#ifndef MEMSTOW_PACKED_H
#define MEMSTOW_PACKED_H

#include "tools/reader/reader.h"

enum { PACKED_MAX = SNAP_TOTALS_FIELDS * SNAP_NUMBER_MAX };

int packed_load(struct reader *reader);
/* Returns the number of bytes written. */
size_t packed_total(const struct total *total, uint8_t to[PACKED_MAX]);

#endif
