/* image_load.h — bytes of a ledger or snapshot → struct image.
 * In: a source, which is treated as hostile. Out: tables and totals, or one message in image->error. It never waits for
 * ever for a process that writes meanwhile. */
#ifndef MEMSTOW_IMAGE_LOAD_H
#define MEMSTOW_IMAGE_LOAD_H

#include "tools/image/image.h"
#include "tools/reader/source.h"

/* 0, or -1 with image->error set. `live`: the process is alive and writes while this reads. */
int image_load(struct image *image, struct source *source, bool live);

#endif
