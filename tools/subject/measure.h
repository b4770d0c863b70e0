/* measure.h — residency of a running process, measured now, into its image.
 * In: an image and a pid. Out: regions, and the `resident` of large blocks and mappings. */
#ifndef MEMSTOW_MEASURE_H
#define MEMSTOW_MEASURE_H

#include "tools/image/image.h"

#include <sys/types.h>

/* False when it cannot be measured (no permission, gone): the image then says so by its flags. */
bool measure_residency(struct image *image, pid_t pid);

#endif
