/* curve.c — see curve.h. */
#include "tools/top/curve.h"

#include <stdio.h>
#include <string.h>

enum { EIGHTHS = 8 };

static void curve_halve(struct curve *curve) {
    for (size_t i = 0; i < CURVE_POINTS / 2; i++) {
        uint64_t a = curve->points[2 * i], b = curve->points[2 * i + 1];
        curve->points[i] = a > b ? a : b;
    }
    curve->count = CURVE_POINTS / 2;
    curve->each *= 2;
}

void curve_add(struct curve *curve, uint64_t value) {
    if (!curve->each) curve->each = 1;
    if (curve->count && curve->in_last < curve->each) {
        uint64_t *last = &curve->points[curve->count - 1];
        if (value > *last) *last = value;
        curve->in_last++;
    } else {
        if (curve->count == CURVE_POINTS) curve_halve(curve);
        curve->points[curve->count++] = value;
        curve->in_last = 1;
    }
    if (value > curve->most) curve->most = value;
}

/* How many eighths of a line are filled in the column of a point. `value`: the bytes of the point. */
static int curve_filled(const struct curve *curve, uint64_t value, int line, int lines) {
    if (!curve->most) return 0;
    int all = (int)((double)value / (double)curve->most * lines * EIGHTHS + 0.5);
    if (all == 0 && value) all = 1;
    int filled = all - (lines - 1 - line) * EIGHTHS;
    return filled < 0 ? 0 : filled > EIGHTHS ? EIGHTHS : filled;
}

struct text_line curve_line(const struct curve *curve, int line, int lines, int width) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    struct text_line text = {""};
    size_t used = 0, columns = width > 0 ? (size_t)width : 0;
    for (size_t column = 0; column < columns; column++) {
        size_t back = columns - column;
        int filled = back <= curve->count ? curve_filled(curve, curve->points[curve->count - back], line, lines) : 0;
        size_t length = strlen(blocks[filled]);
        if (used + length + 1 > sizeof text.s) break;
        memcpy(text.s + used, blocks[filled], length + 1);
        used += length;
    }
    return text;
}

uint64_t curve_looks(const struct curve *curve, int width) {
    size_t points = width > 0 && (size_t)width < curve->count ? (size_t)width : curve->count;
    return points ? (points - 1) * curve->each + curve->in_last : 0;
}
