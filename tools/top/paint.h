/* paint.h — draws the state of top on the screen.
 * In: a struct watch. Out: calls of screen.h. */
#ifndef MEMSTOW_TOP_PAINT_H
#define MEMSTOW_TOP_PAINT_H

#include "tools/top/watch.h"

/* How many rows fit on a screen of `lines` lines. */
size_t paint_page(const struct face *face, int lines);
void paint(struct watch *watch);

#endif
