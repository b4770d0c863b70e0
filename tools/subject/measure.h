/* measure.h — measures the residency of a running process now, and adds it to the process's image.
 * In: an image and a pid. Out: regions, and `resident` of large blocks and mappings. */
#ifndef MEMSTOW_MEASURE_H
#define MEMSTOW_MEASURE_H

#include "tools/image/image.h"

#include <sys/types.h>

/* Measures a process. False: that is not possible (no permission, or it is gone), and the image's flags say so. */
bool measure_residency(struct image *image, pid_t pid);

#endif
