/* html_tree.h — the call stacks of a page as one tree of lines, and which sites stand in it one by one.
 * In: leaves (a site each) with the stacks of one image, or of two that are compared. Out: nodes in the order in which
 * a walk from the outside meets them, each with a piece of stack that is kept once, and entries at the nodes. A file
 * never grows with the program: what holds least is put together at the nearest outer stack that has room, so sums stay
 * exact. */
#ifndef MEMSTOW_HTML_TREE_H
#define MEMSTOW_HTML_TREE_H

#include "tools/html/html_lines.h"

struct html_leaf {
    uint32_t stack, line; /* the line counts where there is no stack */
    uint32_t node;      /* of the image, at which it stands: that of its stack, unless it is put together with others */
    uint32_t tag;       /* leaves of different tags are never put together */
    float weight;       /* those of most weight stand by themselves */
    uint32_t cost : 16; /* of its figures in a file, in eighths of a byte */
    uint32_t side : 1, folded : 1;
};

struct html_side {
    const struct image *image;
    struct symbols *symbols;
    uint32_t *child, *sibling, *leaf; /* by node: the first of each, 0: none. Leaves count from 1 */
    uint32_t *frame_lines; /* by frame: where its lines begin in `levels`, behind their number; 0: not named */
};

struct html_tree {
    struct html_lines *lines;
    struct html_side sides[2];
    struct html_leaf *leaves;
    uint32_t *next_leaf; /* at the same node */
    uint32_t *line_leaf; /* by line: the first of those without a stack */
    size_t module_lines;
    size_t leaf_count;
    uint32_t *levels; /* lines of frames */
    size_t level_count, level_room;

    uint32_t *node_segment, *node_children, *node_entries;
    size_t node_count, node_room;
    uint32_t *segment_end, *words; /* lines of segments; a segment begins where the one before ends */
    size_t segment_count, segment_room, word_count, word_room;
    uint32_t *segment_slots; /* 1 + segment, by what it has in it */
    size_t slot_count;
    uint32_t *members, *entry_end; /* leaves of entries; more than one where they were put together */
    size_t member_count, entry_count, entry_room;
    size_t folded;       /* leaves that were */
    uint64_t steps_left; /* what a file can make us do has an end */
};

/* Takes the leaves over. `lines` has those of leaves without a stack, and no others. An image may be NULL. 0, or -1: no
 * memory, as all that follow. */
int html_tree_begin(struct html_tree *tree, struct html_lines *lines, const struct image *const images[2],
                    struct symbols *const symbols[2], struct html_leaf *leaves, size_t count);
void html_tree_end(struct html_tree *tree);
/* Which leaves stand by themselves: `most` at most, and no more than fit into so many bytes of a file. */
int html_tree_choose(struct html_tree *tree, size_t most, size_t bytes);
/* Both may be done again. */
int html_tree_build(struct html_tree *tree);
/* The groups "segments" and "tree". */
int html_tree_write(const struct html_tree *tree, struct html_out *out);

/* The leaves of an entry. */
const uint32_t *html_tree_entry(const struct html_tree *tree, size_t entry, size_t *count);
/* The entry of each leaf. NULL: no memory. */
uint32_t *html_tree_entries_of_leaves(const struct html_tree *tree);

#endif
