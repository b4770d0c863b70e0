/* calltree.h — the stacks of an image as one tree, from the outermost frames inwards.
 * In: bytes per node. Out: what each frame calls, with the bytes below it, expanded branch by branch as somebody looks.
 * It never holds more than the branches that were asked for. */
#ifndef MEMSTOW_CALLTREE_H
#define MEMSTOW_CALLTREE_H

#include "tools/image/image.h"

/* A line of the tree: a function of a frame. Where others are inlined in it, level 0 is the outermost one. */
struct calltree_line {
    uint32_t frame, level;
};

struct calltree {
    const struct image *image;
    uint64_t *bytes;           /* per node: of it and all below it */
    double *variances;         /* the same, of estimates; NULL: they are exact */
    uint32_t *child, *sibling; /* per node: first child and next sibling with any bytes, or 0 */
    /* Names what is shown: which line stands for all that read the same as this one. Asked for what holds more than
     * `line_from` bytes only; NULL: each frame is a line of its own. */
    struct calltree_line (*line)(void *context, struct calltree_line line, bool *more);
    void *line_context;
    uint64_t line_from;
    /* Frames that are not there: what they call takes their place. NULL: all are. */
    bool (*skips)(void *context, uint32_t frame);
    void *skips_context;
    uint64_t steps_left; /* what a file can make us do has an end: then nothing more is called */
};

/* A line in its place in the tree. The same place may be reached in several segments: one part each. */
struct calltree_part {
    struct calltree_line line; /* what it counts as; the frame itself is at this position of the node's segment */
    uint32_t node, position;
    uint32_t level : 31, more : 1; /* of the frame itself, and whether it has a level further in */
};
struct branch {
    struct calltree_line line;
    uint64_t bytes;
    double variance;
    const struct calltree_part *parts;
    size_t count;
};
struct branches {
    struct branch *list; /* the most bytes first */
    size_t count;
    struct calltree_part *parts;
};

/* Takes `bytes` and `variances` over: what is held at each node itself. 0 or -1: no memory. */
int calltree_begin(struct calltree *tree, const struct image *image, uint64_t *bytes, double *variances);
void calltree_end(struct calltree *tree);
/* What a branch calls; NULL: the outermost frames. 0 or -1. */
int calltree_expand(struct calltree *tree, const struct branch *branch, struct branches *branches);
void branches_clear(struct branches *branches);

#endif
