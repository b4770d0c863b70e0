/* misuse_image.h — misused blocks of an image: freed twice, with an overwritten header, or perhaps used by a CUDA
 * kernel when they were no longer on their device.
 * In: the MISUSE section of a file, which is treated as hostile. Out: its records, and their call stacks. */
#ifndef MEMSTOW_MISUSE_IMAGE_H
#define MEMSTOW_MISUSE_IMAGE_H

#include "tools/reader/reader.h"

/* When the call stacks are read, they get new numbers. Only the totals of the image are given these numbers. So call
 * misuse_image_lend before the stacks are read: it adds a total for each site of the misuse records, and returns 0 or
 * -1. Call misuse_image_take_back afterwards: it copies the new numbers from the added totals to the records, and
 * removes these totals. */
int misuse_image_lend(struct reader *reader);
void misuse_image_take_back(struct reader *reader);

/* Whether the record is of a device's block that a CUDA kernel may have used when the device met an illegal
 * address. */
bool misuse_is_fault(const struct snap_misuse *misuse);
/* misuse_words: the misuse as text, such as "freed twice". misuse_kind_name: its name in JSON. */
const char *misuse_words(const struct snap_misuse *misuse);
const char *misuse_kind_name(const struct snap_misuse *misuse);

#endif
