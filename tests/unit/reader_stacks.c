/* reader_stacks.c — call stacks come back from a file, and no number in them is trusted. */
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/views/calltree.h"
#include "tools/reader/image_load.h"
#include "tools/views/stacks.h"
#include "tools/subject/writer.h"

/* Frames 0 and 1 are native, of modules 0 and 1. Frame 2 is a Python function. The segment at word 1 has frame 0,
 * the segment at word 3 has frames 1 and 2, and the segment at word 6 has frames 0 and 1. */
static const uint32_t words[] = {0, 1, 0, 2, 1, 2, 2, 0, 1};
/* Node 1 has frame 0. Node 2 has frames 0, 1 and 2 in two segments. Node 3 has frames 0 and 1 in one segment. */
static const struct snap_node nodes[] = {{0}, {0, 1, 0}, {1, 3, 0}, {0, 6, 0}};

static void build(struct builder *builder, const struct snap_node *node, size_t node_count, const uint32_t *word,
                  size_t word_count, uint64_t bias) {
    struct snap_frame frames[] = {
        {.address = bias + 0x10, .module = 1}, {.address = 0x20, .module = 2}, {.line = 7, .code = 1}};
    struct snap_code code = {.name = 1, .file = 8};
    builder_begin(builder, SNAP_LEDGER);
    static const char strings[] = "\0/bin/a\0/lib/b.so";
    struct snap_module modules[2] = {{.path = 1, .bias = bias}, {.path = 8}};
    builder_section(builder, SNAP_STRINGS, 1, strings, sizeof strings, 0);
    builder_section(builder, SNAP_MODULE, sizeof modules[0], modules, 2, 0);
    builder_section(builder, SNAP_FRAME, sizeof frames[0], frames, 3, 0);
    builder_section(builder, SNAP_CODE, sizeof code, &code, 1, 0);
    builder_section(builder, SNAP_SEGMENT, sizeof *word, word, word_count, 0);
    builder_section(builder, SNAP_NODE, sizeof *node, node, node_count, 0);
}

static void load(struct image *image, const struct builder *builder) {
    struct source source;
    source_buffer(&source, builder->bytes, builder->size);
    cr_assert_eq(image_load(image, &source, false), 0, "%s", image->error);
}

static void expect_stack(const struct image *image, uint32_t node, const char *expected) {
    uint32_t frames[8];
    char text[16] = "";
    size_t count = stack_frames(image, node, frames, 8);
    for (size_t i = 0; i < count; i++) text[i] = (char)('0' + frames[i]);
    cr_expect_str_eq(text, expected);
}

Test(reader_stacks, innermost_first) {
    struct builder builder;
    struct image image;
    build(&builder, nodes, 4, words, 9, 0);
    load(&image, &builder);
    expect_stack(&image, 0, "");
    expect_stack(&image, 1, "0");
    expect_stack(&image, 2, "210");
    expect_stack(&image, 3, "10");
    expect_stack(&image, 4, "");
    cr_expect_null(stack_frame(&image, 3));
    cr_expect_eq(stack_frame_code(&image, stack_frame(&image, 2))->name, 1);
    cr_expect_null(stack_frame_code(&image, stack_frame(&image, 0)));
    cr_expect_eq(stack_frame_module(&image, stack_frame(&image, 1)), &image.modules[1]);
    image_clear(&image);
    builder_end(&builder);
}

/* Equal frames have equal hashes, wherever their modules are mapped, and in however many segments a stack is stored. */
Test(reader_stacks, equal_paths_have_equal_hashes) {
    static const uint32_t other_words[] = {3, 0, 1, 2, 1, 2, 2, 0, 1};
    static const struct snap_node other_nodes[] = {{0}, {0, 0, 0}, {0, 6, 0}, {2, 4, 0}};
    struct builder builder, other_builder;
    struct image image, other;
    build(&builder, nodes, 4, words, 9, 0);
    build(&other_builder, other_nodes, 4, other_words, 9, 0x7f0000000000);
    load(&image, &builder);
    load(&other, &other_builder);
    uint64_t *hashes = stack_hashes(&image), *other_hashes = stack_hashes(&other);
    cr_expect_eq(hashes[0], 0);
    cr_expect_eq(hashes[2], other_hashes[1]);
    cr_expect_eq(hashes[2], other_hashes[3]);
    cr_expect_eq(hashes[3], other_hashes[2]);
    cr_expect_neq(hashes[1], hashes[3]);
    cr_expect_neq(hashes[2], hashes[3]);
    free(hashes);
    free(other_hashes);
    image_clear(&image);
    image_clear(&other);
    builder_end(&builder);
    builder_end(&other_builder);
}

/* A long stack has the same hashes in one segment and in two. Native frames do not change hashes of Python frames. */
Test(reader_stacks, python_frames_alone) {
    enum { LONG = 20, CUT = 9 };
    uint32_t all[64] = {LONG}, *cut = all + 1 + LONG, *other = cut + 2 + LONG;
    for (uint32_t i = 0; i < LONG; i++) all[1 + i] = i == LONG / 2 ? 2 : i % 2;
    cut[0] = CUT;
    cut[1 + CUT] = LONG - CUT;
    for (uint32_t i = 0; i < LONG; i++) cut[1 + i + (i >= CUT)] = all[1 + i];
    other[0] = 4;
    for (uint32_t i = 0; i < 4; i++) other[1 + i] = i == 2 ? 2 : 1;
    const uint32_t at_cut = 1 + LONG, at_rest = at_cut + 1 + CUT, at_other = at_cut + 2 + LONG;
    const struct snap_node pieces[] = {{0}, {0, 0, 0}, {0, at_cut, 0}, {2, at_rest, 0}, {0, at_other, 0}};
    struct builder builder;
    struct image image;
    build(&builder, pieces, 5, all, at_other + 5, 0);
    load(&image, &builder);
    uint64_t *hashes = stack_hashes(&image), *python = stack_python_hashes(&image);
    cr_expect_eq(hashes[1], hashes[3]);
    cr_expect_neq(hashes[1], hashes[4]);
    cr_expect(python[1] && python[1] == python[3] && python[1] == python[4]);
    cr_expect_eq(python[2], 0, "nine native frames");
    free(hashes);
    free(python);
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_stacks, order_counts) {
    static const uint32_t both[] = {2, 0, 1, 2, 1, 0};
    static const struct snap_node two[] = {{0}, {0, 0, 0}, {0, 3, 0}};
    struct builder builder;
    struct image image;
    build(&builder, two, 3, both, 6, 0);
    load(&image, &builder);
    uint64_t *hashes = stack_hashes(&image);
    cr_expect_neq(hashes[1], hashes[2]);
    free(hashes);
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_stacks, marks_reach_inwards) {
    static const uint8_t marks[3] = {0, 1, 0};
    struct builder builder;
    struct image image;
    build(&builder, nodes, 4, words, 9, 0);
    load(&image, &builder);
    uint8_t *marked = stack_marked(&image, marks);
    cr_expect_eq(marked[0] | marked[1], 0);
    cr_expect_eq(marked[2] & marked[3], 1);
    free(marked);
    image_clear(&image);
    builder_end(&builder);
}

/* Nodes 2 and 3 share frames 0 and 1, stored in different segments. In the tree each of these frames is one branch. */
Test(reader_stacks, a_tree_of_frames) {
    struct builder builder;
    struct image image;
    struct calltree tree;
    struct branches roots, below, last;
    build(&builder, nodes, 4, words, 9, 0);
    load(&image, &builder);
    uint64_t *bytes = calloc(4, sizeof *bytes);
    bytes[1] = 1, bytes[2] = 20, bytes[3] = 300;
    cr_assert_eq(calltree_begin(&tree, &image, bytes, NULL), 0);
    cr_assert_eq(calltree_expand(&tree, NULL, &roots), 0);
    cr_assert_eq(roots.count, 1);
    cr_expect_eq(roots.list[0].bytes, 321);
    cr_assert_eq(calltree_expand(&tree, &roots.list[0], &below), 0);
    cr_assert_eq(below.count, 1);
    cr_expect_eq(below.list[0].line.frame, 1);
    cr_expect_eq(below.list[0].bytes, 320);
    cr_assert_eq(calltree_expand(&tree, &below.list[0], &last), 0);
    cr_assert_eq(last.count, 1);
    cr_expect_eq(last.list[0].line.frame, 2);
    cr_expect_eq(last.list[0].bytes, 20);
    calltree_clear(&roots);
    calltree_clear(&below);
    calltree_clear(&last);
    calltree_end(&tree);
    image_clear(&image);
    builder_end(&builder);
}

/* Frames 1 and 2 begin with the same line, and in frame 1 another function is inlined. */
static struct calltree_line name_line(void *asked, struct calltree_line line, bool *more) {
    ++*(size_t *)asked;
    *more = line.frame == 1 && line.level == 0;
    return line.frame == 2 ? (struct calltree_line){1, 0} : line;
}

Test(reader_stacks, a_tree_of_lines) {
    static const struct snap_node pair[] = {{0, 0, 0}, {0, 1, 0}, {1, 3, 0}, {1, 5, 0}};
    static const uint32_t pair_words[] = {0, 1, 0, 1, 1, 1, 2};
    struct builder builder;
    struct image image;
    struct calltree tree;
    struct branches roots, below, last;
    size_t asked = 0;
    build(&builder, pair, 4, pair_words, 7, 0);
    load(&image, &builder);
    uint64_t *bytes = calloc(4, sizeof *bytes);
    bytes[2] = 20, bytes[3] = 300;
    cr_assert_eq(calltree_begin(&tree, &image, bytes, NULL), 0);
    tree.line = name_line;
    tree.line_context = &asked;
    tree.line_from = 10;
    cr_assert_eq(calltree_expand(&tree, NULL, &roots), 0);
    cr_assert_eq(calltree_expand(&tree, &roots.list[0], &below), 0);
    cr_assert_eq(below.count, 1);
    cr_expect_eq(below.list[0].bytes, 320);
    cr_expect_eq(below.list[0].line.frame, 1);
    cr_assert_eq(calltree_expand(&tree, &below.list[0], &last), 0);
    cr_assert_eq(last.count, 1, "frame 2 ends where frame 1 goes on");
    cr_expect_eq(last.list[0].bytes, 20);
    cr_expect_eq(last.list[0].line.frame, 1);
    cr_expect_eq(last.list[0].line.level, 1);
    cr_expect_eq(asked, 4);
    tree.line_from = 1000;
    calltree_clear(&below);
    cr_assert_eq(calltree_expand(&tree, &roots.list[0], &below), 0);
    cr_expect_eq(below.count, 2, "what holds little is not asked for");
    calltree_clear(&roots);
    calltree_clear(&below);
    calltree_clear(&last);
    calltree_end(&tree);
    image_clear(&image);
    builder_end(&builder);
}

/* For any numbers, a walk through the stacks ends, and stays inside of the tables. */
Test(reader_stacks, numbers_that_lead_nowhere) {
    static const struct snap_node wild[] = {{7, 7, 7},          {1, 1, 0}, {5, 1, 0}, {0, UINT32_MAX, 0}, {3, 8, 0},
                                            {4, 3, UINT32_MAX}, {0, 0, 0}, {6, 0, 0}, {7, 1, 0}};
    static const uint32_t wild_words[] = {0, 2, 9, UINT32_MAX, 1, 1, 0, 3, UINT32_MAX};
    struct builder builder;
    struct image image;
    struct calltree tree;
    struct branches roots;
    uint32_t frames[8];
    static const uint8_t marks[3] = {1, 1, 1};
    build(&builder, wild, 9, wild_words, 9, 0);
    load(&image, &builder);
    for (uint32_t node = 0; node < 12; node++) cr_expect(stack_frames(&image, node, frames, 8) <= 8);
    uint64_t *hashes = stack_hashes(&image), *bytes = calloc(9, sizeof *bytes);
    uint8_t *marked = stack_marked(&image, marks);
    for (size_t i = 1; i < 9; i++) bytes[i] = 1;
    cr_assert_eq(calltree_begin(&tree, &image, bytes, NULL), 0);
    cr_assert_eq(calltree_expand(&tree, NULL, &roots), 0);
    calltree_clear(&roots);
    calltree_end(&tree);
    free(hashes);
    free(marked);
    image_clear(&image);
    builder_end(&builder);
}

/* Ids that were used again are in no order: node 2 is the outermost, 1 and 4 lie inside of it; 3 and 5 form a
 * circle. */
Test(reader_stacks, parents_may_have_higher_ids) {
    static const struct snap_node unordered[] = {{0},       {2, 6, 0}, {0, 1, 0}, {5, 1, 0},
                                                 {2, 3, 0}, {3, 3, 0}, {99, 6, 0}};
    struct builder builder;
    struct image image;
    struct snap_site sites[8] = {{0}, {0}};
    static const char *const stacks[] = {"100", "0", NULL, "210", NULL, ""};
    for (uint32_t node = 1; node < 7; node++) sites[1 + node] = snap_site(0, node, 2);
    build(&builder, unordered, 7, words, 9, 0);
    builder_section(&builder, SNAP_SITE, sizeof sites[0], sites, 8, 0);
    for (uint32_t node = 1; node < 7; node++)
        builder_counter(&builder, 2, 1 + node, (struct snap_counter){node, 1, 0, 0});
    load(&image, &builder);
    cr_assert_eq(image.total_count, 6);
    for (uint32_t i = 1; i < image.node_count; i++) cr_expect_lt(image.nodes[i].parent, i);
    for (uint32_t i = 0; i < 6; i++) {
        cr_expect_eq(image.totals[i].alloc_bytes, i + 1);
        if (stacks[i]) expect_stack(&image, image.totals[i].stack, stacks[i]);
    }
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_stacks, a_snapshot_has_the_same) {
    struct builder builder;
    struct image image, copy;
    struct source source;
    struct snap_site sites[3] = {{0}, {0}, snap_site(0, 2, 2)};
    char *bytes = NULL;
    size_t size = 0;
    build(&builder, nodes, 4, words, 9, 0);
    builder_section(&builder, SNAP_SITE, sizeof sites[0], sites, 3, 0);
    builder_counter(&builder, 2, 2, (struct snap_counter){5, 1, 0, 0});
    load(&image, &builder);
    cr_expect(image_has_stacks(&image));
    FILE *to = open_memstream(&bytes, &size);
    cr_assert_eq(writer_snapshot(&image, to), 0);
    fclose(to);
    source_buffer(&source, bytes, size);
    cr_assert_eq(image_load(&copy, &source, false), 0, "%s", copy.error);
    cr_assert_eq(copy.total_count, 1);
    expect_stack(&copy, copy.totals[0].stack, "210");
    cr_expect_eq(copy.code_count, 1);
    image_clear(&image);
    image_clear(&copy);
    free(bytes);
    builder_end(&builder);
}
