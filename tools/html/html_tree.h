/* html_tree.h — the call stacks of a page as one tree of lines.
 * In: leaves (one for each site) with the stacks of one image, or of two that are compared. Out: nodes, and entries at
 * the nodes. A node has a segment (a piece of call stacks), and is followed by its children and all nodes below them.
 * An entry is a single leaf, or several merged leaves. */
#ifndef MEMSTOW_HTML_TREE_H
#define MEMSTOW_HTML_TREE_H

#include "tools/html/html_lines.h"
#include "tools/html/html_segments.h"

struct html_leaf {
    uint32_t stack, line; /* line: used where `node` is 0 */
    uint32_t node;        /* a node of the image: that of its stack, or, if the leaf is merged, an outer node */
    uint32_t tag;         /* leaves of different tags are never merged */
    float weight;         /* leaves with the largest weights are shown singly */
    uint32_t cost : 16;   /* the cost of its figures in a file, in eighths of a byte */
    uint32_t side : 1, folded : 1; /* side: index of html_tree.sides; folded: merged with other leaves */
};

struct html_side {
    const struct image *image;
    struct symbols *symbols;
    /* Three arrays by node: the node's first child, its next sibling, and 1 + its first leaf. 0 stands for none. */
    uint32_t *child, *sibling, *leaf;
    /* by frame: the index of the frame's entry in `levels`, or 0 if the frame is not named yet */
    uint32_t *frame_lines;
};

struct html_tree {
    struct html_lines *lines;
    struct html_side sides[2];
    struct html_leaf *leaves;
    uint32_t *next_leaf; /* by leaf: the next leaf at the same node */
    uint32_t *line_leaf; /* by line: 1 + the first leaf where `node` is 0 */
    size_t module_lines; /* how many lines belong to leaves without a stack; these lines have the first numbers */
    size_t leaf_count;
    uint32_t *levels; /* for each named frame: the number of its lines, and then the lines */
    size_t level_count, level_capacity;

    /* by node: its segment, and how many children and entries it has */
    uint32_t *node_segment, *node_children, *node_entries;
    size_t node_count, node_capacity;
    struct html_segments segments;
    /* members: the leaves of all entries; entry_end: by entry, the index in `members` behind the entry's last leaf */
    uint32_t *members, *entry_end;
    size_t member_count, entry_count, entry_capacity;
    size_t folded;       /* number of merged leaves */
    uint64_t steps_left; /* limits the work that a file can cause */
};

/* Begins a tree. html_tree_end() frees `leaves`. `lines` must already have the lines of leaves without a stack, but not
 * yet any lines of frames, which html_tree_build() adds. An image may be NULL. Returns 0, or -1: no memory. Call
 * html_tree_end() whatever the result is. */
int html_tree_begin(struct html_tree *tree, struct html_lines *lines, const struct image *const images[2],
                    struct symbols *const symbols[2], struct html_leaf *leaves, size_t count);
void html_tree_end(struct html_tree *tree);
/* Builds nodes and entries for the leaves. html_choice.h has chosen which leaves are merged. This function can be
 * called again. Returns 0, or -1 if there is no memory. */
int html_tree_build(struct html_tree *tree);
/* Writes the groups "segments" and "tree". Returns 0, or -1: no memory. */
int html_tree_write(const struct html_tree *tree, struct html_out *out);

/* The indices of the leaves of an entry. *count: their number. */
const uint32_t *html_tree_entry(const struct html_tree *tree, size_t entry, size_t *count);
/* Returns a list that has, for each leaf, the index of the leaf's entry. NULL: no memory. The caller frees the list. */
uint32_t *html_tree_entries_of_leaves(const struct html_tree *tree);

#endif
