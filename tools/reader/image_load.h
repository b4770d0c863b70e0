/* image_load.h — turns the bytes of a ledger or snapshot into a struct image.
 * In: a source, which is treated as hostile. Out: tables and totals, or one message in image->error. While the
 * process writes, the reader waits and tries again, but only a limited number of times. */
#ifndef MEMSTOW_IMAGE_LOAD_H
#define MEMSTOW_IMAGE_LOAD_H

#include "tools/image/image.h"
#include "tools/reader/source.h"

/* Loads the whole file. Returns 0, or -1 with image->error set. `live`: the process lives and may write meanwhile. */
int image_load(struct image *image, struct source *source, bool live);
/* As image_load, without the parts that only people look at: call stacks, the peak of each site, origins, misuse,
 * memory over time, the series of earlier readings, and the sums of threads. All else is as with image_load, so figures
 * that are made of totals, owners, blocks and mappings are the same. */
int image_load_figures(struct image *image, struct source *source, bool live);

#endif
