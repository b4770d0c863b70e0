/* layout.h — the lines of the screen as text, for a width in columns.
 * In: figures and names. Out: lines of at most that width. It uses no terminal. */
#ifndef MEMSTOW_TOP_LAYOUT_H
#define MEMSTOW_TOP_LAYOUT_H

#include "tools/base/text.h"
#include "tools/top/keys.h"

#include <stdbool.h>
#include <stdint.h>

enum { LAYOUT_COLUMNS_LEAST = 60, LAYOUT_LINES_LEAST = 12 };

struct layout_row {
    /* bytes gained a second: `now` since the previous look, `mean` since the first */
    int64_t live, device, now, mean, blocks;
    const char *name;
};

/* devices: there is a column for memory on devices. A mark stands in the title of the column by which rows are
 * sorted. */
struct text_line layout_titles(enum rows_sort sort, bool devices, const char *name, int width);
struct text_line layout_row(const struct layout_row *row, bool devices, int width);
/* The number of columns that are left for the name. */
int layout_name_width(bool devices, int width);

/* A rate in bytes a second: "+1.2 MiB/s"; "" for 0. */
struct text layout_rate(int64_t bytes);
/* Bytes over a time, as a rate. */
int64_t layout_per_second(int64_t bytes, double seconds);
/* Two texts on one line: one at the left end, cut to fit, and one at the right end, left out if it does not fit. */
struct text_line layout_ends(const char *left, const char *right, int width);

const char *layout_view_name(enum view view);
const char *layout_sort_name(enum rows_sort sort);
/* The help line at the bottom of the screen. */
const char *layout_keys(const struct face *face);

#endif
