/* packed.h — SNAP_TOTALS, the packed totals of a snapshot, both ways. */
#ifndef MEMSTOW_PACKED_H
#define MEMSTOW_PACKED_H

#include "tools/reader/reader.h"

enum { PACKED_MAX = SNAP_TOTALS_FIELDS * SNAP_NUMBER_MAX };

int packed_load(struct reader *reader);
/* Bytes written. */
size_t packed_total(const struct total *total, uint8_t to[PACKED_MAX]);

#endif
