/* calltree.h — the stacks of an image as one tree, from the outermost frames inwards.
 * In: bytes per node. Out: what each frame calls, with the bytes below it, expanded branch by branch as somebody looks.
 * It never holds more than the branches that were asked for. */
#ifndef MEMSTOW_CALLTREE_H
#define MEMSTOW_CALLTREE_H

#include "image.h"

struct calltree {
    const struct image *image;
    uint64_t *bytes;           /* per node: of it and all below it */
    double *variances;         /* the same, of estimates; NULL: they are exact */
    uint32_t *child, *sibling; /* per node: first child and next sibling with any bytes, or 0 */
    uint64_t steps_left;       /* what a file can make us do has an end: then nothing more is called */
};

/* A frame in its place in the tree. The same place may be reached in several segments: one part each. */
struct calltree_part {
    uint32_t frame, node, position; /* frame is the one at this position of the node's segment */
};
struct branch {
    uint32_t frame;
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
