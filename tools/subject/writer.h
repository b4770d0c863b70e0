/* writer.h — writes an image as a snapshot.
 * In: an image that the reader made. Out: the bytes of a file (snapshot.h) on a stream. */
#ifndef MEMSTOW_WRITER_H
#define MEMSTOW_WRITER_H

#include "tools/image/image.h"

#include <stdio.h>

/* Writes the image as a snapshot. Changes the header and the CUDA sites of `image` to those of the snapshot. Returns 0,
 * or -1 with errno set. */
int writer_snapshot(struct image *image, FILE *to);

#endif
