/* measure.h — measures how much memory of a running process is resident now, and adds this to the process's image.
 * In: an image and a pid. Out: the image's regions, and `resident` of its large blocks and mappings. */
#ifndef MEMSTOW_MEASURE_H
#define MEMSTOW_MEASURE_H

#include "tools/image/image.h"

#include <sys/types.h>

/* Returns whether the memory could be measured. If it could not (for example, without permission), the image's flags
 * say so. */
bool measure_residency(struct image *image, pid_t pid);

#endif
