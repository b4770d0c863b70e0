/* curve.h — a curve of the live bytes that top has seen, look by look.
 * In: a value at each look. Out: lines of block characters, as wide as asked for. The number of points is bounded: when
 * all are used, each two neighbours become one. It uses no files and no terminal. */
#ifndef MEMSTOW_TOP_CURVE_H
#define MEMSTOW_TOP_CURVE_H

#include "tools/base/text.h"

#include <stddef.h>
#include <stdint.h>

enum { CURVE_POINTS = 512, CURVE_LINES_MOST = 4 };

struct curve {
    uint64_t points[CURVE_POINTS]; /* the highest value of `each` looks */
    size_t count, each, in_last;   /* in_last: looks that the newest point has so far */
    uint64_t most;
};

void curve_add(struct curve *curve, uint64_t value);
/* One line of a picture of the curve, which is `lines` lines high and `width` columns wide. Line 0 is the highest. The
 * latest point is in the column at the right. */
struct text_line curve_line(const struct curve *curve, int line, int lines, int width);
/* How many looks back the curve goes in `width` columns. */
uint64_t curve_looks(const struct curve *curve, int width);

#endif
