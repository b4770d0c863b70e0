/* overhead.h — the memory that an allocator takes for live blocks beyond the requested bytes.
 * In: an image. Out: an estimate in bytes, from the mean size at each site, without memstow's own headers. */
#ifndef MEMSTOW_OVERHEAD_H
#define MEMSTOW_OVERHEAD_H

#include "tools/image/image.h"

/* Whether the process's memory comes from glibc's allocator. */
bool overhead_is_glibc(const struct image *image);
/* Estimates the overhead of all live blocks. Returns 0, or -1: no memory. */
int overhead_estimate(const struct image *image, uint64_t *bytes);

#endif
