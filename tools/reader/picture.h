/* picture.h — reads the picture of the peak from a ledger: the live bytes of each site near the peak.
 * In: the picture, and the image's totals, sorted by site. Out: peak_bytes and peak_blocks of the totals. */
#ifndef MEMSTOW_PICTURE_H
#define MEMSTOW_PICTURE_H

#include "tools/reader/reader.h"

int picture_load(struct reader *reader); /* returns 0 or -1 */

#endif
