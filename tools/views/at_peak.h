/* at_peak.h — chooses the figures for the peak: the ledger's last picture, or the live memory.
 * In: an image as it was read. Out: the image, with the figures that are nearer to the peak in place of its picture. */
#ifndef MEMSTOW_AT_PEAK_H
#define MEMSTOW_AT_PEAK_H

#include "tools/image/image.h"

/* Chooses between the picture and the live memory. A picture is taken when the total has fallen, so a program that only
 * grows has none, and a program that grows again has one of an earlier, lower peak. If the live memory is nearer to the
 * highest total, it becomes the picture, and image->picture_is_live is set. Without live memory and without a picture,
 * there are no figures for the peak. */
void at_peak_choose(struct image *image);
/* The distance of the figures from the highest total. */
int64_t at_peak_distance(const struct image *image);
/* False when all known figures are far from the highest total: the picture is of an earlier peak, or was taken late. */
bool at_peak_of_highest(const struct image *image);

/* Names the figures, as the end of a sentence: "the ledger at 7.0 MiB, ..." */
void at_peak_words(const struct image *image, char *text, size_t size);

/* Whether the process ended in order and had freed most of its peak before, as an interpreter does that frees
 * everything. The figures of the peak are then more useful than those of the end. */
bool at_peak_since_freed(const struct image *image);

#endif
