/* html_tree.c — see html_tree.h. The tree is built from the outermost line inwards.
 * - A cursor points to a line in the segment of a node of the image. A step moves it one line inwards. At the end of
 *   the segment, a step replaces the cursor by new cursors, one for each child of the node.
 * - A group has all cursors whose lines, and all lines outside of them, have the same texts. It becomes a node of the
 *   page. All its cursors make steps together, and each step adds a line to the node.
 * - The node ends at a line where a site ends, or after which the cursors are at different lines. Then the cursors at
 *   each of these lines become a new group, and the new groups become the children of the node. */
#include "tools/html/html_tree.h"
#include "tools/base/list.h"
#include "tools/views/stacks.h"

#include <stdlib.h>
#include <string.h>

enum { LEVELS_MOST = 64 /* limit for functions that are inlined in one frame */, LINE_CURSOR = UINT32_MAX };
static const uint64_t STEPS_MAX = 100000000;

static int begin_side(struct html_side *side, const struct image *image, struct symbols *symbols) {
    *side = (struct html_side){.image = image, .symbols = symbols};
    side->child = calloc(image->node_count + 1, sizeof *side->child);
    side->sibling = calloc(image->node_count + 1, sizeof *side->sibling);
    side->leaf = calloc(image->node_count + 1, sizeof *side->leaf);
    side->frame_lines = calloc(image->frame_count + 1, sizeof *side->frame_lines);
    return side->child && side->sibling && side->leaf && side->frame_lines ? 0 : -1;
}

static void end_side(struct html_side *side) {
    free(side->child);
    free(side->sibling);
    free(side->leaf);
    free(side->frame_lines);
}

int html_tree_begin(struct html_tree *tree, struct html_lines *lines, const struct image *const images[2],
                    struct symbols *const symbols[2], struct html_leaf *leaves, size_t count) {
    *tree = (struct html_tree){.lines = lines, .leaves = leaves, .leaf_count = count, .steps_left = STEPS_MAX};
    tree->next_leaf = calloc(count + 1, sizeof *tree->next_leaf);
    tree->module_lines = lines->line_count;
    tree->line_leaf = calloc(tree->module_lines + 1, sizeof *tree->line_leaf);
    tree->members = malloc((count + 1) * sizeof *tree->members);
    int result = leaves && tree->next_leaf && tree->line_leaf && tree->members ? 0 : -1;
    for (int i = 0; i < 2 && result == 0; i++)
        if (images[i]) result = begin_side(&tree->sides[i], images[i], symbols[i]);
    return result;
}

void html_tree_end(struct html_tree *tree) {
    for (int i = 0; i < 2; i++) end_side(&tree->sides[i]);
    free(tree->leaves);
    free(tree->next_leaf);
    free(tree->line_leaf);
    free(tree->levels);
    free(tree->node_segment);
    free(tree->node_children);
    free(tree->node_entries);
    html_segments_end(&tree->segments);
    free(tree->members);
    free(tree->entry_end);
    *tree = (struct html_tree){0};
}

/* ---- cursors, leaves and entries */

struct cursor {
    uint32_t node, position; /* for a site without a stack: `node` is the site's line, and position LINE_CURSOR */
    uint32_t line;
    uint16_t level; /* level among the functions inlined in the frame */
    uint16_t side;
};

struct cursors {
    struct cursor *list;
    size_t count, capacity;
};

struct group {
    size_t first, end; /* range in the stack of cursors */
};

struct build {
    struct html_tree *tree;
    struct cursors stack, now, next;
    struct group *groups;
    size_t group_count, group_capacity;
    uint32_t *chain; /* lines of the node that is being built */
    size_t chain_count, chain_capacity;
    bool failed;
};

static void link_leaf(struct html_tree *tree, uint32_t index) {
    const struct html_leaf *leaf = &tree->leaves[index];
    uint32_t *first = leaf->node ? &tree->sides[leaf->side].leaf[leaf->node] : &tree->line_leaf[leaf->line];
    tree->next_leaf[index] = *first;
    *first = index + 1;
}

/* Adds each node with a leaf at or below it to the list of its parent's children. */
static void link_nodes(struct html_side *side) {
    const struct image *image = side->image;
    for (size_t node = image->node_count; node-- > 1;) {
        if (!side->leaf[node] && !side->child[node]) continue;
        uint32_t parent = image->nodes[node].parent;
        side->sibling[node] = side->child[parent];
        side->child[parent] = (uint32_t)node;
    }
}

static size_t name_frame(struct html_tree *tree, struct html_side *side, uint32_t frame) {
    uint32_t *levels = NULL;
    if (!tree->level_count) tree->level_count = 1; /* 0 means: not named */
    if (!list_grow(&tree->levels, sizeof *tree->levels, tree->level_count, LEVELS_MOST + 1, &tree->level_capacity))
        return 0;
    levels = tree->levels + tree->level_count;
    size_t count = html_lines_frame(tree->lines, side->image, side->symbols, frame, levels + 1, LEVELS_MOST);
    levels[0] = (uint32_t)count;
    side->frame_lines[frame] = (uint32_t)tree->level_count;
    tree->level_count += count + 1;
    return side->frame_lines[frame];
}

/* The lines of a frame: their number, and then the lines. NULL: no memory. */
static const uint32_t *frame_lines(struct html_tree *tree, struct html_side *side, uint32_t frame) {
    uint32_t known = frame < side->image->frame_count ? frame : (uint32_t)side->image->frame_count;
    size_t at = side->frame_lines[known] ? side->frame_lines[known] : name_frame(tree, side, known);
    return at ? tree->levels + at : NULL;
}

static void html_tree_push(struct build *build, struct cursor cursor) {
    struct html_side *side = &build->tree->sides[cursor.side];
    if (!LIST_GROW(build->next.list, build->next.count, build->next.capacity)) {
        build->failed = true;
        return;
    }
    if (cursor.position == LINE_CURSOR) {
        cursor.line = cursor.node;
    } else {
        const uint32_t *lines =
            frame_lines(build->tree, side, stack_segment(side->image, cursor.node).frames[cursor.position]);
        build->failed |= !lines;
        if (lines) cursor.line = lines[1 + cursor.level];
    }
    build->next.list[build->next.count++] = cursor;
}

static int add_entry(struct html_tree *tree, const uint32_t *leaves, size_t count) {
    if (!LIST_GROW(tree->entry_end, tree->entry_count, tree->entry_capacity)) return -1;
    memcpy(tree->members + tree->member_count, leaves, count * sizeof *leaves);
    tree->member_count += count;
    tree->entry_end[tree->entry_count++] = (uint32_t)tree->member_count;
    return 0;
}

static int by_tag(const void *left, const void *right, void *context) {
    const struct html_leaf *leaves = context;
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    if (leaves[a].tag != leaves[b].tag) return leaves[a].tag < leaves[b].tag ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Adds entries for the merged leaves in `folded`: one for all leaves of the same tag. Returns 0, or -1: no memory. */
static int add_folded(struct html_tree *tree, uint32_t *folded, size_t count) {
    qsort_r(folded, count, sizeof *folded, by_tag, tree->leaves);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && tree->leaves[folded[end]].tag == tree->leaves[folded[first]].tag;) end++;
        if (add_entry(tree, folded + first, end - first) < 0) return -1;
    }
    return 0;
}

static int attach_folded(struct html_tree *tree, uint32_t first) {
    size_t count = 0;
    for (uint32_t leaf = first; leaf; leaf = tree->next_leaf[leaf - 1]) count += tree->leaves[leaf - 1].folded;
    if (!count) return 0;
    uint32_t *folded = malloc(count * sizeof *folded);
    if (!folded) return -1;
    count = 0;
    for (uint32_t leaf = first; leaf; leaf = tree->next_leaf[leaf - 1])
        if (tree->leaves[leaf - 1].folded) folded[count++] = leaf - 1;
    int result = add_folded(tree, folded, count);
    free(folded);
    return result;
}

/* Adds the leaves of a list, which begins at `first`, to the node that is being built: an entry for each single leaf,
 * and entries for the merged leaves. */
static void html_tree_attach(struct build *build, uint32_t first) {
    struct html_tree *tree = build->tree;
    for (uint32_t leaf = first; leaf; leaf = tree->next_leaf[leaf - 1]) {
        uint32_t index = leaf - 1;
        if (!tree->leaves[index].folded) build->failed |= add_entry(tree, &index, 1) < 0;
    }
    build->failed |= attach_folded(tree, first) < 0;
}

/* Pushes a cursor for each child of the node `top`. A child without frames, which only a hostile file has, gets no
 * cursor. Its leaves are attached to the node that is being built, and its children are treated like children of `top`.
 * When `steps_left` is 0, all children are treated as if they had no frames. To go from node to node, the function
 * follows links to children, siblings and parents. It is not recursive, so a deep tree cannot overflow the stack. */
static void push_children(struct build *build, uint16_t number, uint32_t top) {
    const struct html_side *side = &build->tree->sides[number];
    for (uint32_t node = side->child[top]; node;) {
        bool empty = !stack_segment(side->image, node).count || !build->tree->steps_left;
        if (!empty) html_tree_push(build, (struct cursor){.node = node, .side = number});
        if (empty) html_tree_attach(build, side->leaf[node]);
        if (empty && side->child[node]) {
            node = side->child[node];
            continue;
        }
        while (node != top && !side->sibling[node]) node = side->image->nodes[node].parent;
        node = node == top ? 0 : side->sibling[node];
    }
}

static void html_tree_step(struct build *build, struct cursor cursor) {
    struct html_side *side = &build->tree->sides[cursor.side];
    if (cursor.position == LINE_CURSOR) {
        html_tree_attach(build, build->tree->line_leaf[cursor.node]);
        return;
    }
    struct segment segment = stack_segment(side->image, cursor.node);
    const uint32_t *lines = frame_lines(build->tree, side, segment.frames[cursor.position]);
    if (build->tree->steps_left) build->tree->steps_left--;
    if (lines && cursor.level + 1u < lines[0]) {
        cursor.level++;
        html_tree_push(build, cursor);
    } else if (cursor.position + 1 < segment.count && build->tree->steps_left) {
        html_tree_push(build,
                       (struct cursor){.node = cursor.node, .position = cursor.position + 1, .side = cursor.side});
    } else {
        html_tree_attach(build, side->leaf[cursor.node]);
        push_children(build, cursor.side, cursor.node);
    }
}

/* ---- building nodes from groups of cursors */

static int html_tree_by_line(const void *left, const void *right) {
    const struct cursor *a = left, *b = right;
    if (a->line != b->line) return a->line < b->line ? -1 : 1;
    if (a->side != b->side) return a->side < b->side ? -1 : 1;
    return a->node < b->node ? -1 : a->node > b->node;
}

static bool one_line(const struct cursors *cursors) {
    for (size_t i = 1; i < cursors->count; i++)
        if (cursors->list[i].line != cursors->list[0].line) return false;
    return cursors->count;
}

static void push_group(struct build *build, const struct cursor *first, size_t count) {
    if (!LIST_GROW(build->groups, build->group_count, build->group_capacity) ||
        !list_grow(&build->stack.list, sizeof *first, build->stack.count, count, &build->stack.capacity)) {
        build->failed = true;
        return;
    }
    memcpy(build->stack.list + build->stack.count, first, count * sizeof *first);
    build->groups[build->group_count++] = (struct group){build->stack.count, build->stack.count + count};
    build->stack.count += count;
}

/* Divides the cursors of build->next into groups, one for each line, and pushes the groups. The group that is pushed
 * last is built first. Returns the number of groups. */
static uint32_t push_groups(struct build *build) {
    struct cursors *next = &build->next;
    uint32_t count = 0;
    if (next->count > 1) qsort(next->list, next->count, sizeof *next->list, html_tree_by_line);
    for (size_t end = next->count, first; end; end = first, count++) {
        for (first = end - 1; first && next->list[first - 1].line == next->list[end - 1].line;) first--;
        push_group(build, next->list + first, end - first);
    }
    return count;
}

static int reserve_node(struct html_tree *tree) {
    size_t capacity = tree->node_capacity;
    if (tree->node_count < capacity) return 0;
    size_t capacities[] = {capacity, capacity, capacity};
    if (!LIST_GROW(tree->node_segment, tree->node_count, capacities[0]) ||
        !LIST_GROW(tree->node_children, tree->node_count, capacities[1]) ||
        !LIST_GROW(tree->node_entries, tree->node_count, capacities[2]))
        return -1;
    tree->node_capacity = capacities[0];
    return 0;
}

static void add_node(struct build *build, size_t entries_before) {
    struct html_tree *tree = build->tree;
    if (reserve_node(tree) < 0) {
        build->failed = true;
        return;
    }
    build->failed |=
        !html_segments_number(&tree->segments, build->chain, build->chain_count, &tree->node_segment[tree->node_count]);
    tree->node_children[tree->node_count] = push_groups(build);
    tree->node_entries[tree->node_count++] = (uint32_t)(tree->entry_count - entries_before);
}

static void add_to_chain(struct build *build, uint32_t line) {
    if (!LIST_GROW(build->chain, build->chain_count, build->chain_capacity))
        build->failed = true;
    else
        build->chain[build->chain_count++] = line;
}

static void swap_cursors(struct build *build) {
    struct cursors now = build->now;
    build->now = build->next;
    build->next = now;
    build->next.count = 0;
}

static void pop_group(struct build *build) {
    struct group group = build->groups[--build->group_count];
    build->next.count = 0;
    if (!list_grow(&build->next.list, sizeof *build->next.list, 0, group.end - group.first, &build->next.capacity)) {
        build->failed = true;
        return;
    }
    memcpy(build->next.list, build->stack.list + group.first, (group.end - group.first) * sizeof *build->next.list);
    build->next.count = group.end - group.first;
    build->stack.count = group.first;
}

static void make_node(struct build *build) {
    size_t entries_before = build->tree->entry_count;
    pop_group(build);
    build->chain_count = 0;
    do {
        swap_cursors(build);
        if (!build->now.count) break;
        add_to_chain(build, build->now.list[0].line);
        for (size_t i = 0; i < build->now.count; i++) html_tree_step(build, build->now.list[i]);
    } while (!build->failed && build->tree->entry_count == entries_before && one_line(&build->next));
    add_node(build, entries_before);
}

/* Makes the root: the outermost lines of all stacks, and the lines of sites without a stack. */
static void make_root(struct build *build) {
    const struct html_tree *tree = build->tree;
    for (uint16_t side = 0; side < 2; side++)
        if (tree->sides[side].image) push_children(build, side, 0);
    for (uint32_t line = 0; line < tree->module_lines; line++)
        if (tree->line_leaf[line]) html_tree_push(build, (struct cursor){.node = line, .position = LINE_CURSOR});
    add_node(build, 0);
}

static void clear_side(struct html_side *side) {
    size_t size = (side->image->node_count + 1) * sizeof *side->leaf;
    memset(side->child, 0, size);
    memset(side->sibling, 0, size);
    memset(side->leaf, 0, size);
}

/* Drops the result of an earlier build. The names of frames stay. */
static void tree_clear(struct html_tree *tree) {
    for (int i = 0; i < 2; i++)
        if (tree->sides[i].image) clear_side(&tree->sides[i]);
    memset(tree->line_leaf, 0, (tree->module_lines + 1) * sizeof *tree->line_leaf);
    html_segments_clear(&tree->segments);
    tree->node_count = tree->entry_count = tree->member_count = 0;
    tree->steps_left = STEPS_MAX;
}

int html_tree_build(struct html_tree *tree) {
    struct build build = {.tree = tree};
    tree_clear(tree);
    for (size_t i = tree->leaf_count; i-- > 0;) link_leaf(tree, (uint32_t)i);
    for (int i = 0; i < 2; i++)
        if (tree->sides[i].image) link_nodes(&tree->sides[i]);
    make_root(&build);
    while (build.group_count && !build.failed) make_node(&build);
    free(build.stack.list);
    free(build.now.list);
    free(build.next.list);
    free(build.groups);
    free(build.chain);
    return build.failed || tree->lines->failed ? -1 : 0;
}

/* ---- writing the tree */

static void write_column(struct html_out *out, const char *group, const char *column, const uint32_t *numbers,
                         size_t count) {
    html_column_begin(out, group, column, "numbers", count);
    for (size_t i = 0; i < count; i++) html_column_put(out, numbers[i]);
    html_column_end(out);
}

/* Writes the segment of each node: 0 for a segment that is new and has the next number, else 1 + its number. */
static void write_segments(const struct html_tree *tree, struct html_out *out) {
    uint32_t next = 0;
    html_column_begin(out, "tree", "segment", "again", tree->node_count);
    for (size_t i = 0; i < tree->node_count; i++) {
        bool first = tree->node_segment[i] == next;
        html_column_put(out, first ? 0 : tree->node_segment[i] + UINT64_C(1));
        next += first;
    }
    html_column_end(out);
}

int html_tree_write(const struct html_tree *tree, struct html_out *out) {
    if (html_segments_write(&tree->segments, tree->lines->line_count, out) < 0) return -1;
    write_segments(tree, out);
    write_column(out, "tree", "children", tree->node_children, tree->node_count);
    write_column(out, "tree", "sites", tree->node_entries, tree->node_count);
    return 0;
}

const uint32_t *html_tree_entry(const struct html_tree *tree, size_t entry, size_t *count) {
    size_t first = entry ? tree->entry_end[entry - 1] : 0;
    *count = tree->entry_end[entry] - first;
    return tree->members + first;
}

uint32_t *html_tree_entries_of_leaves(const struct html_tree *tree) {
    uint32_t *entries = calloc(tree->leaf_count + 1, sizeof *entries);
    for (size_t entry = 0, count; entries && entry < tree->entry_count; entry++) {
        const uint32_t *leaves = html_tree_entry(tree, entry, &count);
        for (size_t i = 0; i < count; i++) entries[leaves[i]] = (uint32_t)entry;
    }
    return entries;
}
