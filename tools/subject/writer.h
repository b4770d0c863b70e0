/* writer.h — writes an image as a snapshot.
 * In: an image that was read. Out: the bytes of a file (snapshot.h) on a stream. */
#ifndef MEMSTOW_WRITER_H
#define MEMSTOW_WRITER_H

#include "tools/image/image.h"

#include <stdio.h>

/* Returns 0, or -1 with errno set. Turns the image's header into the header of the snapshot. */
int writer_snapshot(struct image *image, FILE *to);

#endif
