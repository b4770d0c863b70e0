/* at_peak.h — which figures show what was live at the peak: the last picture of the ledger, or what is live.
 * In: an image as it was read. Out: the same with the nearer figures in place of its picture. */
#ifndef MEMSTOW_AT_PEAK_H
#define MEMSTOW_AT_PEAK_H

#include "tools/image/image.h"

/* A picture is taken when the total has fallen. A program that only grows has none, and one that grows again has one of
 * an earlier, lower peak: when what is live is nearer to the highest total, it is the picture from now on, and
 * image->picture_is_live. No picture is left where nothing is live and none was taken. */
void at_peak_choose(struct image *image);
/* How far the figures are from the highest total. */
int64_t at_peak_distance(const struct image *image);
/* False when all that is known is far from the highest total: a picture of an earlier peak, or one taken late. */
bool at_peak_of_highest(const struct image *image);

/* Which figures they are, as the rest of a sentence: "the ledger at 7.0 MiB, ..." */
void at_peak_words(const struct image *image, char *text, size_t size);

/* It ended in order, as an interpreter does that frees all it holds, and most of its peak was gone by then: the figures
 * of the peak say more than those of the end. */
bool at_peak_since_freed(const struct image *image);

#endif
