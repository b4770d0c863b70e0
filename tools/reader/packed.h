/* packed.h — packs and unpacks the totals of a snapshot, which are in its section SNAP_TOTALS.
 * In: totals to pack, or a file to unpack, which is treated as hostile. Out: the packed bytes, or the totals. */
#ifndef MEMSTOW_PACKED_H
#define MEMSTOW_PACKED_H

#include "tools/reader/reader.h"

enum { PACKED_MAX = SNAP_TOTALS_FIELDS * SNAP_NUMBER_MAX };

/* Adds the totals of the file to the image. Returns 0 or -1. */
int packed_load(struct reader *reader);
/* Packs a total into `to`. Returns the number of bytes. */
size_t packed_total(const struct total *total, uint8_t to[PACKED_MAX]);

#endif
