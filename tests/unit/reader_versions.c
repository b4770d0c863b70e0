/* reader_versions.c — files of a newer library are read as far as this version knows them. */
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/reader/image_load.h"

static int load(struct image *image, const struct builder *builder) {
    struct source source;
    source_buffer(&source, builder->bytes, builder->size);
    return image_load(image, &source, false);
}

Test(reader_versions, skips_unknown_sections_and_versions) {
    struct builder builder;
    struct image image;
    builder_begin(&builder, SNAP_LEDGER);
    builder_section(&builder, 4711, 3, "abcdef", 2, 99);
    size_t modules = builder_section(&builder, SNAP_MODULE, 1, "x", 1, 0);
    builder_head(&builder, modules)->version = 2;
    builder_modules(&builder);
    cr_assert_eq(load(&image, &builder), 0, "%s", image.error);
    cr_expect_eq(image.module_count, 2);
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_versions, cuts_longer_records) {
    struct builder builder;
    struct image image;
    struct {
        struct snap_site site;
        uint64_t added;
    } sites[3] = {{{0}, 1}, {{0}, 2}, {snap_site(0, 0, 2), 3}};
    builder_begin(&builder, SNAP_LEDGER);
    builder_header(&builder)->minor = 7;
    builder_modules(&builder);
    builder_section(&builder, SNAP_SITE, sizeof sites[0], sites, 3, 0);
    builder_counter(&builder, 2, 2, (struct snap_counter){5, 1, 0, 0});
    cr_assert_eq(load(&image, &builder), 0, "%s", image.error);
    cr_expect_str_eq(image_module(&image, image.totals[0].module), "/lib/b.so");
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_versions, joins_sections_of_one_type) {
    struct builder builder;
    struct image image;
    struct snap_tag one[2] = {{.model = 1}, {.model = 2}}, two = {.model = 3};
    builder_begin(&builder, SNAP_LEDGER);
    builder_section(&builder, SNAP_TAG, sizeof two, one, 2, 0);
    builder_section(&builder, SNAP_TAG, sizeof two, &two, 1, 2);
    cr_assert_eq(load(&image, &builder), 0, "%s", image.error);
    cr_assert_eq(image.tag_count, 3);
    cr_expect_eq(image.tags[2].model, 3);
    image_clear(&image);
    builder_end(&builder);
}

static void expect_error(struct builder *builder, const char *error) {
    struct image image;
    cr_expect_eq(load(&image, builder), -1);
    cr_expect_str_eq(image.error, error);
    image_clear(&image);
    builder_end(builder);
}

Test(reader_versions, refuses_another_major_version) {
    struct builder builder;
    builder_begin(&builder, SNAP_LEDGER);
    builder_header(&builder)->major = 2;
    expect_error(&builder, "format 2.6 is newer than this memstow (1.6) reads");
}

Test(reader_versions, refuses_another_kind) {
    struct builder builder;
    builder_begin(&builder, 9);
    expect_error(&builder, "of a kind (9) that this memstow does not know");
}

Test(reader_versions, refuses_another_byte_order) {
    struct builder builder;
    builder_begin(&builder, SNAP_LEDGER);
    builder_header(&builder)->byte_order = 0x04030201;
    expect_error(&builder, "not a memstow file of this machine: another byte order");
}
