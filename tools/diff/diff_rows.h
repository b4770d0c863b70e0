/* diff_rows.h — the rows of a comparison, for output that other programs read (--folded, --pprof).
 * In: rows by site, and the kind of owner whose name is the outermost frame. Out: rows with memory in either file, and
 * the images that have their call stacks. Memory of CUDA devices is left out. */
#ifndef MEMSTOW_DIFF_ROWS_H
#define MEMSTOW_DIFF_ROWS_H

#include "tools/diff/diff.h"

struct diff_rows {
    struct diff *diff;
    const struct row **rows; /* if --top was given, sorted by change, the largest first */
    size_t count, shown;     /* shown: how many rows --top leaves separate */
    const struct image *images[2];
    char **roots; /* outermost frames, by id of the owner's name (groups.h); roots[no_root] is NULL: no owner */
    uint32_t no_root;
};

/* Finds the rows, their images and their outermost frames. Returns 0, or -1: no memory. Call diff_rows_end in both
 * cases. */
int diff_rows_begin(struct diff_rows *self, struct diff *diff);
void diff_rows_end(struct diff_rows *self);

/* The index in `roots` of the row's outermost frame. */
uint32_t diff_rows_root(const struct diff_rows *self, const struct row *row);
/* Returns the call stack of the row, as a node of the image of the side row->stack_side. Returns 0 if the row has no
 * stack, or if the stack cannot be read. */
uint32_t diff_rows_stack(const struct diff_rows *self, const struct row *row);
/* The name that stands in place of a call stack, if the row has none. */
const char *diff_rows_nowhere(const struct diff_rows *self, const struct row *row);

#endif
