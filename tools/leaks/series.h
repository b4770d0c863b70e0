/* series.h — reads and writes a series, the section SERIES of a snapshot: how the memory of a process changed from
 * reading to reading.
 * In: points and changes (leak_sites.h), or bytes, which are not trusted. Out: bytes, or points and changes. The
 * section has only sites that hold something in the snapshot itself. docs/format.md has the layout. */
#ifndef MEMSTOW_SERIES_H
#define MEMSTOW_SERIES_H

#include "tools/leaks/leak_sites.h"

/* Packs the points and changes into image->series. `image` must be the last image that was read into `sites`, and the
 * changes must be sorted. Returns 0, or -1: no memory. */
int series_pack(const struct leak_sites *sites, struct image *image);
/* Unpacks image->series into `sites`. The rest of the image must have been read. Sites that the image does not have are
 * left out. Returns 0; -1: no memory; -2: damaged. */
int series_unpack(struct leak_sites *sites, const struct image *image);
/* Call it when the last image of a process was read into `sites`. If several images were read, sorts the changes
 * between them. If only one image was read, unpacks its series, if it has one. Returns the same as series_unpack. */
int series_complete(struct leak_sites *sites, const struct image *image);

#endif
