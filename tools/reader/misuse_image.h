/* misuse_image.h — blocks that the program freed twice, or whose header it overwrote, in an image.
 * In: the MISUSE section of a file, hostile as all of it. Out: its records, and what the call stacks in them are. */
#ifndef MEMSTOW_MISUSE_IMAGE_H
#define MEMSTOW_MISUSE_IMAGE_H

#include "tools/reader/reader.h"

/* Before the stacks are read, 0 or -1; and after: as origin_stacks.h does. */
int misuse_image_lend(struct reader *reader);
void misuse_image_take_back(struct reader *reader);

/* "freed twice"; and its name in JSON. */
const char *misuse_words(const struct snap_misuse *misuse);
const char *misuse_kind_name(const struct snap_misuse *misuse);

#endif
