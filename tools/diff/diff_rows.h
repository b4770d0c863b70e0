/* diff_rows.h — the rows of a comparison for forms that other programs read.
 * In: rows by site, and the kind of owner whose name is the outermost frame. Out: rows that hold something on either
 * side, with the image that has their call stack. Memory of CUDA devices is left out. */
#ifndef MEMSTOW_DIFF_ROWS_H
#define MEMSTOW_DIFF_ROWS_H

#include "tools/diff/diff.h"

struct diff_rows {
    struct diff *diff;
    const struct row **rows; /* those with the largest change first, if --top was given */
    size_t count, shown;     /* shown: by themselves */
    const struct image *images[2];
    char **roots; /* names of owners, by id; the last is NULL: there is no owner, or none was asked for */
    uint32_t no_root;
};

/* Returns 0, or -1: no memory. Call diff_rows_end whatever the result is. */
int diff_rows_begin(struct diff_rows *self, struct diff *diff);
void diff_rows_end(struct diff_rows *self);

/* The index of the row's root. */
uint32_t diff_rows_root(const struct diff_rows *self, const struct row *row);
/* The side whose image has the stack, and the stack; 0: there is none, or it cannot be read. */
uint32_t diff_rows_stack(const struct diff_rows *self, const struct row *row);
/* The name in place of a stack. */
const char *diff_rows_nowhere(const struct diff_rows *self, const struct row *row);

#endif
