/* html_choice.c — see html_choice.h. A leaf is one site in the tree (html_tree.h). Its cost is the space that it needs
 * in the file: for its figures, and for the nodes and lines that no leaf before it has. */
#include "tools/html/html_choice.h"
#include "tools/views/stacks.h"

#include <stdlib.h>
#include <string.h>

static uint32_t node_of(const struct html_tree *tree, const struct html_leaf *leaf) {
    const struct image *image = tree->sides[leaf->side].image;
    return image && leaf->stack < image->node_count ? leaf->stack : 0;
}

/* The cost of each item in a file, in eighths of a byte: an average of real and random programs. The number of a new
 * segment costs nothing, because it is the next number. */
enum {
    COST_NODE = 2,
    COST_SEGMENT_AGAIN = 8, /* the number of a segment that the file has already */
    COST_FIRST = 3,         /* the first line of a segment */
    COST_LINE = 25,         /* a further line of a segment */
    COST_EXPECTED = 1,      /* a line B after a line A, if B also came after A the last time that A was written */
    COST_FRAME = 40         /* the texts of a frame that the file does not have yet */
};

struct choice {
    const struct html_tree *tree;
    /* Marks: 1 if the file has a node or word already. nodes: by side, then by node. words: by side, then by word of
     * the image. */
    uint8_t *nodes[2], *words[2];
    /* by side, then by frame: 1 + the frame that followed when this frame was written last; 0: the file does not have
     * this frame yet */
    uint32_t *followers[2];
};

static int choice_begin(struct choice *choice, const struct html_tree *tree) {
    *choice = (struct choice){.tree = tree};
    for (int i = 0; i < 2; i++) {
        const struct image *image = tree->sides[i].image;
        if (!image) continue;
        choice->nodes[i] = calloc(image->node_count + 1, 1);
        choice->words[i] = calloc(image->word_count + 1, 1);
        choice->followers[i] = calloc(image->frame_count + 1, sizeof *choice->followers[i]);
        if (!choice->nodes[i] || !choice->words[i] || !choice->followers[i]) return -1;
        choice->nodes[i][0] = 1;
    }
    return 0;
}

static void choice_end(struct choice *choice) {
    for (int i = 0; i < 2; i++) {
        free(choice->nodes[i]);
        free(choice->words[i]);
        free(choice->followers[i]);
    }
}

static size_t line_cost(const struct choice *choice, int side, uint32_t before, uint32_t frame) {
    uint32_t *followers = choice->followers[side], frame_count = (uint32_t)choice->tree->sides[side].image->frame_count;
    size_t cost = followers[before] == frame + 1 ? COST_EXPECTED : before == frame_count ? COST_FIRST : COST_LINE;
    if (!followers[frame]) cost += COST_FRAME;
    if (!followers[frame]) followers[frame] = frame + 1;
    followers[before] = frame + 1;
    return cost;
}

static size_t segment_cost(const struct choice *choice, const struct image *image, int side, uint32_t node) {
    struct segment segment = stack_segment(image, node);
    uint32_t unknown = (uint32_t)image->frame_count, before = unknown;
    size_t cost = COST_NODE;
    if (!segment.count) return cost;
    uint8_t *known = &choice->words[side][image->nodes[node].segment];
    if (*known) return cost + COST_SEGMENT_AGAIN;
    *known = 1;
    for (uint32_t i = 0; i < segment.count; i++) {
        uint32_t frame = segment.frames[i] < unknown ? segment.frames[i] : unknown;
        cost += line_cost(choice, side, before, frame);
        before = frame;
    }
    return cost;
}

/* Marks a leaf as shown singly, at its own node. Returns the leaf's cost. */
static size_t choice_take(struct choice *choice, struct html_leaf *leaf) {
    const struct image *image = choice->tree->sides[leaf->side].image;
    size_t cost = leaf->cost;
    leaf->node = node_of(choice->tree, leaf);
    leaf->folded = 0;
    for (uint32_t node = leaf->node; node && !choice->nodes[leaf->side][node]; node = image->nodes[node].parent) {
        choice->nodes[leaf->side][node] = 1;
        cost += segment_cost(choice, image, leaf->side, node);
    }
    return cost;
}

static void choice_fold(const struct choice *choice, struct html_leaf *leaf) {
    const struct image *image = choice->tree->sides[leaf->side].image;
    uint32_t node = node_of(choice->tree, leaf);
    while (node && !choice->nodes[leaf->side][node]) node = image->nodes[node].parent;
    leaf->node = node;
    leaf->folded = 1;
}

/* The upper half of the bits of a weight. Weights are not negative, so this half sorts like the weight itself, to
 * within one part in 128. */
static uint32_t html_choice_rank_of(float weight) {
    uint32_t bits;
    memcpy(&bits, &weight, sizeof bits);
    return bits >> 16;
}

/* Sorts leaves by weight, the largest first. It uses buckets, because there may be a million leaves, and a rough order
 * is enough. */
static uint32_t *by_weight(const struct html_tree *tree) {
    enum { RANKS = 1 << 16 };
    uint32_t *order = malloc((tree->leaf_count + 1) * sizeof *order), *next = calloc(RANKS + 1, sizeof *next);
    for (size_t i = 0; order && next && i < tree->leaf_count; i++) next[html_choice_rank_of(tree->leaves[i].weight)]++;
    for (uint32_t rank = RANKS, before = 0; order && next && rank-- > 0;) {
        uint32_t count = next[rank];
        next[rank] = before;
        before += count;
    }
    for (size_t i = 0; order && next && i < tree->leaf_count; i++)
        order[next[html_choice_rank_of(tree->leaves[i].weight)]++] = (uint32_t)i;
    if (!next) free(order);
    uint32_t *result = next ? order : NULL;
    free(next);
    return result;
}

static void choice_fill(struct html_tree *tree, struct choice *choice, const uint32_t *order, size_t most,
                        size_t bytes) {
    size_t used = 0, taken = 0;
    while (taken < tree->leaf_count && taken < most && used < 8 * bytes)
        used += choice_take(choice, &tree->leaves[order[taken++]]);
    tree->folded = tree->leaf_count - taken;
    for (; taken < tree->leaf_count; taken++) choice_fold(choice, &tree->leaves[order[taken]]);
}

int html_choice_make(struct html_tree *tree, size_t most, size_t bytes) {
    struct choice choice;
    uint32_t *order = by_weight(tree);
    int result = choice_begin(&choice, tree);
    if (!order) result = -1;
    if (result == 0) choice_fill(tree, &choice, order, most, bytes);
    choice_end(&choice);
    free(order);
    return result;
}

int html_choice_all(struct html_tree *tree, size_t bytes) {
    struct choice choice;
    size_t used = 0, taken = 0;
    int result = choice_begin(&choice, tree);
    while (result == 0 && taken < tree->leaf_count && used < 8 * bytes)
        used += choice_take(&choice, &tree->leaves[taken++]);
    if (result == 0 && taken == tree->leaf_count) {
        tree->folded = 0;
        result = 1;
    }
    choice_end(&choice);
    return result;
}
