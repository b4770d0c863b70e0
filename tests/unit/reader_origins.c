/* reader_origins.c — the origin of a descriptor or thread has its call stack, although that stack allocated nothing.
 * Origins add nothing to the totals. */
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/reader/image_load.h"
#include "tools/views/stacks.h"

enum { FRAME = 0, STACK = 1 };

static struct image load(struct builder *builder) {
    struct image image;
    struct source source;
    source_buffer(&source, builder->bytes, builder->size);
    cr_assert_eq(image_load(&image, &source, false), 0, "%s", image.error);
    builder_end(builder);
    return image;
}

/* Site 2 has no call stack, site 3 has one, and site 4 is free. */
static void add_three_sites(struct builder *builder) {
    struct snap_site sites[5] = {{0}, {0}, snap_site(0, 0, 1), snap_site(0, STACK, 2), {SNAP_SITE_FREE}};
    struct snap_frame frame = {.address = 0x1000, .module = 1};
    struct snap_node nodes[2] = {{.segment = UINT32_MAX}, {.segment = 1}};
    uint32_t words[3] = {0, 1, FRAME};
    builder_modules(builder);
    builder_section(builder, SNAP_SITE, sizeof sites[0], sites, 5, 0);
    builder_section(builder, SNAP_FRAME, sizeof frame, &frame, 1, 0);
    builder_section(builder, SNAP_SEGMENT, sizeof words[0], words, 3, 0);
    builder_section(builder, SNAP_NODE, sizeof nodes[0], nodes, 2, 0);
}

static void three_sites(struct builder *builder, uint32_t kind) {
    builder_begin(builder, kind);
    add_three_sites(builder);
    if (kind == SNAP_LEDGER) builder_counter(builder, 2, 2, (struct snap_counter){100, 1, 0, 0});
}

/* Adds origins. The count in the head of their section is 0, because the reader does not need it. */
static void add_origins(struct builder *builder, uint32_t type, const struct snap_origin *origins, uint64_t count) {
    size_t at = builder_section(builder, type, sizeof *origins, origins, count, 0);
    builder_head(builder, at)->count = 0;
}

Test(reader_origins, have_their_stacks_and_no_totals) {
    struct builder builder;
    const struct snap_origin origins[3] = {
        {0}, {.sequence = 2, .kind = SNAP_ORIGIN_SOCKET, .key = 1, .site = 3, .inode = 9}};
    const struct snap_origin thread = {.kind = SNAP_ORIGIN_OF_THREAD, .key = 77, .site = 3, .birth_ns = 5};
    const struct snap_mapping mappings[2] = {
        {.kind = SNAP_MAP_FILE, .address = 4096, .length = 8192, .site = 3, .shared = 1},
        {.kind = SNAP_MAP_FILE, .address = 65536, .length = 4096, .site = 3}};
    three_sites(&builder, SNAP_LEDGER);
    add_origins(&builder, SNAP_ORIGIN, origins, 3);
    add_origins(&builder, SNAP_START, &thread, 1);
    builder_section(&builder, SNAP_MAPPING, sizeof mappings[0], mappings, 2, 0);
    struct image image = load(&builder);
    cr_assert_eq(image.origin_count, 3);
    cr_expect(image.origins[0].kind == SNAP_ORIGIN_SOCKET && image.origins[0].key == 1 && image.origins[0].inode == 9);
    cr_expect(image.origins[1].kind == SNAP_ORIGIN_OF_THREAD && image.origins[1].key == 77 &&
              image.origins[1].birth_ns == 5);
    cr_expect(image.origins[2].kind == 0 && image.origins[2].start == 4096 && image.origins[2].end == 12288);
    for (size_t i = 0; i < 3; i++) {
        uint32_t frames[2];
        cr_assert_eq(stack_frames(&image, image.origins[i].stack, frames, 2), 1);
        cr_expect_eq(stack_frame(&image, frames[0])->address, 0x1000);
    }
    cr_expect_eq(image.total_count, 1);
    cr_expect_eq(image.host.live_bytes, 100);
    image_clear(&image);
}

Test(reader_origins, nothing_in_them_is_believed) {
    struct builder builder;
    const struct snap_origin origins[5] = {{.sequence = 3, .kind = SNAP_ORIGIN_FILE, .site = 3},
                                           {.kind = SNAP_ORIGIN_FILE, .key = UINT32_MAX, .site = UINT32_MAX},
                                           {.kind = 12345, .site = 5},
                                           {.kind = SNAP_ORIGIN_FILE, .site = 4},
                                           {.kind = SNAP_ORIGIN_FILE, .site = 2}};
    three_sites(&builder, SNAP_LEDGER);
    add_origins(&builder, SNAP_ORIGIN, origins, 5);
    struct image image = load(&builder);
    cr_assert_eq(image.origin_count, 4, "one is being written");
    for (size_t i = 0; i < 4; i++) cr_expect_eq(image.origins[i].stack, 0, "%zu", i);
    image_clear(&image);
}

Test(reader_origins, a_snapshot_has_none) {
    struct builder builder;
    const struct snap_origin origin = {.kind = SNAP_ORIGIN_FILE, .site = 3};
    three_sites(&builder, SNAP_SNAPSHOT);
    add_origins(&builder, SNAP_ORIGIN, &origin, 1);
    struct image image = load(&builder);
    cr_expect_eq(image.origin_count, 0);
    image_clear(&image);
}

/* The file has as many sections as a file may have, and nearly as many origins. A reader that searched all sections
 * for each origin would take many minutes. */
Test(reader_origins, as_many_sections_as_births) {
    enum { SECTIONS = 1000000, ORIGINS = 800000 };
    const struct snap_origin origin = {.kind = SNAP_ORIGIN_FILE, .site = 3};
    struct snap_origin *origins = malloc(ORIGINS * sizeof *origins);
    struct builder builder;
    cr_assert(origins);
    for (size_t i = 0; i < ORIGINS; i++) origins[i] = origin;
    builder_begin(&builder, SNAP_LEDGER);
    for (size_t i = 0; i < SECTIONS; i++) builder_section(&builder, SNAP_START, sizeof origin, NULL, 0, 0);
    add_three_sites(&builder);
    add_origins(&builder, SNAP_ORIGIN, origins, ORIGINS);
    struct image image = load(&builder);
    cr_assert_eq(image.origin_count, ORIGINS);
    cr_expect(image.origins[0].stack && image.origins[ORIGINS - 1].stack == image.origins[0].stack);
    image_clear(&image);
    free(origins);
}
