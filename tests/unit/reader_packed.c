/* reader_packed.c — the packed totals of a snapshot, in both directions and with impossible numbers. */
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/reader/image_load.h"
#include "tools/reader/packed.h"
#include "tools/subject/writer.h"

static int load(struct image *image, const void *bytes, size_t size) {
    struct source source;
    source_buffer(&source, bytes, size);
    return image_load(image, &source, false);
}

static void load_entries(struct image *image, const uint8_t *entries, size_t size, uint64_t count, int expected) {
    struct builder builder;
    builder_begin(&builder, SNAP_SNAPSHOT);
    size_t offset = builder_section(&builder, SNAP_TOTALS, 1, entries, size, 0);
    builder_head(&builder, offset)->count = count;
    cr_assert_eq(load(image, builder.bytes, builder.size), expected, "%s", image->error);
    builder_end(&builder);
}

Test(reader_packed, numbers_come_back) {
    static const uint64_t numbers[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, INT64_MAX, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct total total = {.class = SNAP_MAPPED,
                              .tag = 1,
                              .stack = UINT32_MAX,
                              .module = 3,
                              .flags = TOTAL_INEXACT,
                              .alloc_bytes = numbers[i],
                              .free_blocks = 9,
                              .peak_blocks = numbers[i]};
        uint8_t entry[PACKED_MAX];
        struct image image;
        load_entries(&image, entry, packed_total(&total, entry), 1, 0);
        cr_assert_eq(image.total_count, 1);
        cr_expect_eq(image.totals[0].alloc_bytes, numbers[i]);
        cr_expect_eq(image.totals[0].peak_blocks, numbers[i]);
        cr_expect_eq(image.totals[0].stack, UINT32_MAX);
        cr_expect_eq(image.totals[0].class, SNAP_MAPPED);
        cr_expect_eq(image.inexact, 1);
        image_clear(&image);
    }
}

Test(reader_packed, refuses_numbers_of_more_than_64_bits) {
    static const uint8_t overlong[] = {1,    0,    0,    0,    0, 0x80, 0x80, 0x80, 0x80, 0x80,
                                       0x80, 0x80, 0x80, 0x80, 2, 0,    0,    0,    0,    0};
    static const uint8_t endless[] = {1, 0, 0, 0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    struct image image;
    load_entries(&image, overlong, sizeof overlong, 1, -1);
    cr_expect(strstr(image.error, "an impossible total"));
    load_entries(&image, endless, sizeof endless, 1, -1);
}

Test(reader_packed, refuses_impossible_entries) {
    static const uint8_t no_class[11] = {0}, big_tag[16] = {1, 0x80, 0x80, 0x80, 0x80, 0x10};
    static const uint8_t cut[16] = {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0x80, 0x80, 0x80, 0x80};
    struct image image;
    load_entries(&image, no_class, sizeof no_class, 1, -1);
    load_entries(&image, big_tag, sizeof big_tag, 1, -1);
    load_entries(&image, cut, sizeof cut, 1, 0);
    image_clear(&image);
    load_entries(&image, cut, sizeof cut, 2, -1);
}

/* ledger → image → snapshot → image */
Test(reader_packed, a_snapshot_says_what_the_ledger_said) {
    struct builder builder;
    struct image before, after;
    struct snap_site sites[3] = {{0}, {0}, snap_site(0, 0, 2)};
    struct snap_large large = {.address = 0x10000, .size = 70000, .site = 2};
    builder_begin(&builder, SNAP_LEDGER);
    builder_header(&builder)->inherited_bytes = 50;
    builder_modules(&builder);
    builder_section(&builder, SNAP_SITE, sizeof sites[0], sites, 3, 0);
    builder_section(&builder, SNAP_LARGE, sizeof large, &large, 1, 0);
    builder_counter(&builder, 2, 2, (struct snap_counter){70000, 1, 0, 0});
    builder_counter(&builder, 2, SNAP_SITE_INHERITED, (struct snap_counter){0, 0, 20, 1});
    cr_assert_eq(load(&before, builder.bytes, builder.size), 0);
    char *bytes = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&bytes, &size);
    cr_assert_eq(writer_snapshot(&before, to), 0);
    fclose(to);
    cr_assert_eq(load(&after, bytes, size), 0, "%s", after.error);
    cr_expect_eq(after.header.kind, SNAP_SNAPSHOT);
    cr_expect_eq(after.header.size, size);
    cr_expect_eq(after.host.live_bytes, 70000);
    cr_expect_eq(after.inherited.live_bytes, 30);
    cr_assert_eq(after.large_count, 1);
    cr_expect_str_eq(image_module(&after, image_total(&after, after.large[0].site)->module), "/lib/b.so");
    image_clear(&before);
    image_clear(&after);
    free(bytes);
    builder_end(&builder);
}
