/* calltree.c — see calltree.h. The stacks of an image are a tree of nodes. Each node has a segment of several frames.
 * The segments of two siblings may begin with the same frames, so one branch of the tree of frames may lie in several
 * nodes: it is a set of pairs (node, position in the node's segment). A step inwards moves each pair to the next frame
 * of its segment. At the end of the segment, it replaces the pair by pairs for the first frames of the node's
 * children. */
#include "tools/views/calltree.h"
#include "tools/base/list.h"
#include "tools/views/stacks.h"

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

static const uint64_t STEPS_MAX = 100000000; /* a million recorded stacks need a hundredth of these steps */

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

static int parts_add(struct parts *parts, uint32_t frame, uint32_t level, uint32_t node, uint32_t position) {
    if (!LIST_GROW(parts->list, parts->count, parts->capacity)) return -1;
    parts->list[parts->count++] = (struct calltree_part){{frame, level}, node, position, level & INT32_MAX, false};
    return 0;
}

/* Adds the first frames below a node. A child without frames, which only a hostile file has, is replaced by its
 * children. The walk follows first children downwards and parents upwards, so it needs no recursion, and no depth can
 * overflow a stack. */
static int add_children(const struct calltree *tree, uint32_t top, struct parts *parts) {
    const struct image *image = tree->image;
    for (uint32_t node = tree->child[top]; node;) {
        struct segment segment = stack_segment(image, node);
        if (segment.count && parts_add(parts, segment.frames[0], 0, node, 0) < 0) return -1;
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
    uint32_t at = part->position, next = at + 1;
    if (part->more) return parts_add(parts, segment.frames[at], part->level + 1, part->node, at);
    if (next < segment.count) return parts_add(parts, segment.frames[next], 0, part->node, next);
    return add_children(tree, part->node, parts);
}

/* Replaces skipped frames by their callees, which are added at the end of the list, until no frame is skipped. */
static int calltree_skip(struct calltree *tree, struct parts *parts) {
    size_t kept = 0;
    for (size_t i = 0; tree->skips && i < parts->count; i++) {
        struct calltree_part part = parts->list[i];
        if (!tree->skips(tree->skips_context, part.line.frame))
            parts->list[kept++] = part;
        else if (tree->steps_left && tree->steps_left-- && add_next(tree, &part, parts) < 0)
            return -1;
    }
    if (tree->skips) parts->count = kept;
    return 0;
}

static int compare_lines(struct calltree_line a, struct calltree_line b) {
    if (a.frame != b.frame) return a.frame < b.frame ? -1 : 1;
    return a.level < b.level ? -1 : a.level > b.level;
}

static int calltree_by_line(const void *left, const void *right) {
    const struct calltree_part *a = left, *b = right;
    int order = compare_lines(a->line, b->line);
    if (order) return order;
    return a->node < b->node ? -1 : a->node > b->node;
}

static int calltree_by_bytes(const void *left, const void *right) {
    const struct branch *a = left, *b = right;
    if (a->bytes != b->bytes) return a->bytes > b->bytes ? -1 : 1;
    return compare_lines(a->line, b->line);
}

static void sort_parts(struct parts *parts) {
    for (size_t i = 1; i < parts->count; i++)
        if (compare_lines(parts->list[i - 1].line, parts->list[i].line) > 0) {
            qsort(parts->list, parts->count, sizeof *parts->list, calltree_by_line);
            return;
        }
}

/* If the lines of several parts have the same text, gives all these parts the same line. Lines of at most line_from
 * bytes stay as they are. */
static void calltree_unite(const struct calltree *tree, struct parts *parts) {
    for (size_t first = 0, next; first < parts->count; first = next) {
        struct calltree_line line = parts->list[first].line;
        uint64_t bytes = 0;
        bool more = false;
        for (next = first; next < parts->count && compare_lines(parts->list[next].line, line) == 0; next++)
            bytes += tree->bytes[parts->list[next].node];
        if (bytes <= tree->line_from) continue;
        line = tree->line(tree->line_context, line, &more);
        for (size_t i = first; i < next; i++) {
            parts->list[i].line = line;
            parts->list[i].more = more;
        }
    }
    sort_parts(parts);
}

static bool begins_branch(const struct parts *parts, size_t i) {
    return i == 0 || compare_lines(parts->list[i].line, parts->list[i - 1].line) != 0;
}

static int make_branches(const struct calltree *tree, struct parts *parts, struct branches *branches) {
    size_t count = 0;
    sort_parts(parts);
    if (tree->line) calltree_unite(tree, parts);
    for (size_t i = 0; i < parts->count; i++) count += begins_branch(parts, i);
    branches->list = calloc(count + 1, sizeof *branches->list);
    if (!branches->list) return -1;
    for (size_t i = 0; i < parts->count; i++) {
        const struct calltree_part *part = &parts->list[i];
        if (begins_branch(parts, i))
            branches->list[branches->count++] = (struct branch){.line = part->line, .parts = part};
        struct branch *branch = &branches->list[branches->count - 1];
        branch->bytes += tree->bytes[part->node];
        if (tree->variances) branch->variance += tree->variances[part->node];
        branch->count++;
    }
    qsort(branches->list, branches->count, sizeof *branches->list, calltree_by_bytes);
    return 0;
}

int calltree_expand(struct calltree *tree, const struct branch *branch, struct branches *branches) {
    struct parts parts = {0};
    int result = branch ? 0 : add_children(tree, 0, &parts);
    for (size_t i = 0; branch && result == 0 && i < branch->count; i++)
        result = add_next(tree, &branch->parts[i], &parts);
    if (result == 0) result = calltree_skip(tree, &parts);
    *branches = (struct branches){.parts = parts.list};
    if (parts.count > tree->steps_left) parts.count = 0;
    tree->steps_left -= parts.count;
    if (result == 0) result = make_branches(tree, &parts, branches);
    if (result < 0) calltree_clear(branches);
    return result;
}

void calltree_clear(struct branches *branches) {
    free(branches->list);
    free(branches->parts);
    *branches = (struct branches){0};
}
