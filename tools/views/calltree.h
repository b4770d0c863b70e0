/* calltree.h — the stacks of an image as one tree, from the outermost frames inwards.
 * In: bytes per node. Out: the callees of each frame, with the bytes below them. Branches are expanded on request. Only
 * expanded branches are in memory. */
#ifndef MEMSTOW_CALLTREE_H
#define MEMSTOW_CALLTREE_H

#include "tools/image/image.h"

/* A line of the tree: a function of a frame. With inlining a frame has several functions; level 0 is the outermost. */
struct calltree_line {
    uint32_t frame, level;
};

struct calltree {
    const struct image *image;
    uint64_t *bytes;           /* per node: its bytes and those of all nodes below it */
    double *variances;         /* variances of the bytes, if they are estimates; NULL: they are exact */
    uint32_t *child, *sibling; /* per node: its first child that has bytes; its next sibling that has bytes; 0: none */
    /* Returns one line for all lines that have the same text, so that they become one branch. *more: whether the frame
     * has an inner level. This function is called only for lines of more than `line_from` bytes. If it is NULL, each
     * frame is a line of its own. */
    struct calltree_line (*line)(void *context, struct calltree_line line, bool *more);
    void *line_context;
    uint64_t line_from;
    /* True for a frame that is left out: its callees take its place. NULL: no frame is left out. */
    bool (*skips)(void *context, uint32_t frame);
    void *skips_context;
    uint64_t steps_left; /* limits the work that a file can cause: at 0 no more callees are looked for */
};

/* One of the places where a branch's frame is. Several nodes (stacks.h) may have the frame in their segments; the
 * branch has a part for each of them. */
struct calltree_part {
    struct calltree_line line;     /* the line of this frame, or of another frame whose line has the same text */
    uint32_t node, position;       /* where the frame itself is: at this position of the node's segment */
    uint32_t level : 31, more : 1; /* level: the frame's own level; more: whether this frame has an inner level */
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

/* Takes over `bytes` and `variances`, which have the figures of each node itself, without the nodes below it. Returns
 * 0, or -1: no memory. */
int calltree_begin(struct calltree *tree, const struct image *image, uint64_t *bytes, double *variances);
void calltree_end(struct calltree *tree);
/* *branches: the callees of a branch, or with branch NULL the outermost frames. Returns 0, or -1: no memory. */
int calltree_expand(struct calltree *tree, const struct branch *branch, struct branches *branches);
void calltree_clear(struct branches *branches);

#endif
