/* at_peak.h — which figures show what was live at the peak: the last picture of the ledger, or what is live.
 * In: an image as it was read. Out: the same with the nearer figures in place of its picture. */
#ifndef MEMSTOW_AT_PEAK_H
#define MEMSTOW_AT_PEAK_H

#include "image.h"

/* A picture is taken when the total has fallen. That of a program which grows shows an earlier, lower peak: when what
 * is live is nearer to the highest total, it is the picture from now on, and image->picture_is_live. */
void at_peak_choose(struct image *image);
/* How far the figures are from the highest total. */
int64_t at_peak_distance(const struct image *image);
/* False when the picture is of an earlier peak than the highest, and nothing nearer is known. */
bool at_peak_of_highest(const struct image *image);

#endif
