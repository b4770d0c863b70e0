/* picture.h — turns the picture of the peak in a ledger (the live bytes of each site near the peak) into the peak of
 * each total. In: totals by site, sorted by site. Out: the memory of each total at the peak. */
#ifndef MEMSTOW_PICTURE_H
#define MEMSTOW_PICTURE_H

#include "tools/reader/reader.h"

int picture_load(struct reader *reader); /* returns 0 or -1 */

#endif
