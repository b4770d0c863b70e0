/* at_peak.h — chooses the figures for the peak: the ledger's last picture of it (the live bytes of each site at that
 * time), or the present live memory.
 * In: an image as it was read. Out: the same image, whose picture is replaced by the live memory if that is nearer to
 * the peak. */
#ifndef MEMSTOW_AT_PEAK_H
#define MEMSTOW_AT_PEAK_H

#include "tools/image/image.h"

/* Chooses between the picture and the live memory. A picture is taken when the total has fallen. So a program that only
 * grows has no picture, and a program that grows again has a picture of an earlier, lower peak. If the live memory is
 * nearer to the highest total, it becomes the picture, and image->picture_is_live is set. Without live memory and
 * without a picture, there are no figures for the peak. */
void at_peak_choose(struct image *image);
/* The highest total minus the total of the picture, in bytes. */
int64_t at_peak_distance(const struct image *image);
/* False if the picture is far from the highest total: it is of an earlier peak, or was taken late. True without a
 * picture. */
bool at_peak_of_highest(const struct image *image);

/* Says what the picture shows, as the end of a sentence: "the ledger at 7.0 MiB, ..." */
void at_peak_words(const struct image *image, char *text, size_t size);

/* Whether there is a picture, and the process exited normally after it had freed more than half of its peak (and more
 * than 1 MiB). An example is an interpreter that frees everything at its end. For such a process, the figures of the
 * peak are more useful than the figures of the end. */
bool at_peak_since_freed(const struct image *image);

#endif
