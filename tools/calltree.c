/* calltree.c — the stacks of an image as one tree; see calltree.h.
 * Nodes are a tree already, but of segments: two siblings may begin with the same frames. So a place in the tree of
 * frames is a set of (node, position), and one step inwards moves each of them by a frame, into the children where a
 * segment ends. */
#include "calltree.h"
#include "stacks.h"

#include <stdlib.h>
#include <string.h>

static void sum_up(struct calltree *tree) {
    const struct image *image = tree->image;
    for (size_t node = image->node_count; node-- > 1;) {
        uint32_t parent = image->nodes[node].parent;
        tree->bytes[parent] += tree->bytes[node];
        if (tree->variances) tree->variances[parent] += tree->variances[node];
        if (!tree->bytes[node]) continue;
        tree->sibling[node] = tree->child[parent];
        tree->child[parent] = (uint32_t)node;
    }
}

static const uint64_t STEPS_MAX = 100000000; /* a million honest stacks take a hundredth of it */

int calltree_begin(struct calltree *tree, const struct image *image, uint64_t *bytes, double *variances) {
    *tree = (struct calltree){.image = image, .bytes = bytes, .variances = variances, .steps_left = STEPS_MAX};
    tree->child = calloc(image->node_count + 1, sizeof *tree->child);
    tree->sibling = calloc(image->node_count + 1, sizeof *tree->sibling);
    if (!bytes || !tree->child || !tree->sibling) return -1;
    sum_up(tree);
    return 0;
}

void calltree_end(struct calltree *tree) {
    free(tree->bytes);
    free(tree->variances);
    free(tree->child);
    free(tree->sibling);
    *tree = (struct calltree){0};
}

struct parts {
    struct calltree_part *list;
    size_t count, capacity;
};

static int parts_add(struct parts *parts, uint32_t frame, uint32_t node, uint32_t position) {
    if (parts->count == parts->capacity) {
        size_t capacity = parts->capacity ? 2 * parts->capacity : 16;
        struct calltree_part *grown = realloc(parts->list, capacity * sizeof *grown);
        if (!grown) return -1;
        parts->list = grown;
        parts->capacity = capacity;
    }
    parts->list[parts->count++] = (struct calltree_part){frame, node, position};
    return 0;
}

/* The first frames below a node. A child without frames of its own (no honest one) stands for its children: the walk
 * goes down by first child and comes back by parents, so that no depth can overflow anything. */
static int add_children(const struct calltree *tree, uint32_t top, struct parts *parts) {
    const struct image *image = tree->image;
    for (uint32_t node = tree->child[top]; node;) {
        struct segment segment = stack_segment(image, node);
        if (segment.count && parts_add(parts, segment.frames[0], node, 0) < 0) return -1;
        if (!segment.count && tree->child[node]) {
            node = tree->child[node];
            continue;
        }
        while (node != top && !tree->sibling[node]) node = image->nodes[node].parent;
        node = node == top ? 0 : tree->sibling[node];
    }
    return 0;
}

static int add_next(const struct calltree *tree, const struct calltree_part *part, struct parts *parts) {
    struct segment segment = stack_segment(tree->image, part->node);
    uint32_t next = part->position + 1;
    if (next < segment.count) return parts_add(parts, segment.frames[next], part->node, next);
    return add_children(tree, part->node, parts);
}

static int by_frame(const void *left, const void *right) {
    const struct calltree_part *a = left, *b = right;
    if (a->frame != b->frame) return a->frame < b->frame ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static int by_bytes(const void *left, const void *right) {
    const struct branch *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static bool sorted(const struct parts *parts) {
    for (size_t i = 1; i < parts->count; i++)
        if (parts->list[i - 1].frame > parts->list[i].frame) return false;
    return true;
}

static int make_branches(const struct calltree *tree, struct parts *parts, struct branches *branches) {
    if (!sorted(parts)) qsort(parts->list, parts->count, sizeof *parts->list, by_frame);
    size_t count = 0;
    for (size_t i = 0; i < parts->count; i++) count += i == 0 || parts->list[i].frame != parts->list[i - 1].frame;
    branches->list = calloc(count + 1, sizeof *branches->list);
    if (!branches->list) return -1;
    for (size_t i = 0; i < parts->count; i++) {
        const struct calltree_part *part = &parts->list[i];
        if (i == 0 || part->frame != part[-1].frame)
            branches->list[branches->count++] = (struct branch){.frame = part->frame, .parts = part};
        struct branch *branch = &branches->list[branches->count - 1];
        branch->bytes += tree->bytes[part->node];
        if (tree->variances) branch->variance += tree->variances[part->node];
        branch->count++;
    }
    qsort(branches->list, branches->count, sizeof *branches->list, by_bytes);
    return 0;
}

int calltree_expand(struct calltree *tree, const struct branch *branch, struct branches *branches) {
    struct parts parts = {0};
    int result = branch ? 0 : add_children(tree, 0, &parts);
    for (size_t i = 0; branch && result == 0 && i < branch->count; i++)
        result = add_next(tree, &branch->parts[i], &parts);
    *branches = (struct branches){.parts = parts.list};
    if (parts.count > tree->steps_left) parts.count = 0;
    tree->steps_left -= parts.count;
    if (result == 0) result = make_branches(tree, &parts, branches);
    if (result < 0) branches_clear(branches);
    return result;
}

void branches_clear(struct branches *branches) {
    free(branches->list);
    free(branches->parts);
    *branches = (struct branches){0};
}
