/* history_image.h — memory over time: the curves of an image, and the marks on them.
 * In: the sections POINT, CUDA_POINT, MARK and OWNER_MARK of a file, which is treated as hostile. Out: records in the
 * order of their times, none of them before the start of the process. The bytes of each record can be added up without
 * overflow. */
#ifndef MEMSTOW_HISTORY_IMAGE_H
#define MEMSTOW_HISTORY_IMAGE_H

#include "tools/reader/reader.h"

/* Loads the curves and marks into the image. Returns 0 or -1. */
int history_image_load(struct reader *reader);

#endif
