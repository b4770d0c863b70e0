/* series.h — the readings of a process, in one file: section SERIES of a snapshot, both ways.
 * In: points and changes, or bytes that nobody vouches for. Out: bytes, or points and changes. What is in the section
 * are sites that hold something in the snapshot itself. docs/format.md has the layout. */
#ifndef MEMSTOW_SERIES_H
#define MEMSTOW_SERIES_H

#include "tools/leaks/leak_sites.h"

/* Into image->series. `sites` was read from this image last, and its changes are sorted. 0, or -1: no memory. */
int series_pack(const struct leak_sites *sites, struct image *image);
/* From image->series, after the image was read. Sites that the image does not have are left out. 0; -1: no memory; -2:
 * damaged. */
int series_unpack(struct leak_sites *sites, const struct image *image);

#endif
