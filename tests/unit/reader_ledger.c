/* reader_ledger.c — a ledger is summed over its threads and combined with its tables. */
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/reader/image_load.h"

static struct image load(struct builder *builder) {
    struct image image;
    struct source source;
    source_buffer(&source, builder->bytes, builder->size);
    cr_assert_eq(image_load(&image, &source, false), 0, "%s", image.error);
    return image;
}

static void two_sites(struct builder *builder) {
    struct snap_site sites[4] = {{0}, {0}, snap_site(0, 0, 1), snap_site(0, 0, 2)};
    builder_begin(builder, SNAP_LEDGER);
    builder_modules(builder);
    builder_section(builder, SNAP_SITE, sizeof sites[0], sites, 4, 0);
}

Test(reader_ledger, adds_up_threads_and_classes) {
    struct builder builder;
    two_sites(&builder);
    builder_counter(&builder, 2, 2, (struct snap_counter){1000, 10, 100, 1});
    builder_counter(&builder, 3, 2, (struct snap_counter){0, 0, 300, 3}); /* freed by another thread */
    builder_counter(&builder, SNAP_THREAD_MAPPINGS, 3, (struct snap_counter){8192, 2, 4096, 1});
    struct image image = load(&builder);
    cr_expect_eq(image.host.live_bytes, 600);
    cr_expect_eq(image.host.live_blocks, 6);
    cr_expect_eq(image.host.alloc_bytes, 1000);
    cr_expect_eq(image.mapped.live_bytes, 4096);
    cr_expect_eq(image.total_count, 2);
    cr_expect_str_eq(image_module(&image, image.totals[0].module), "/bin/a");
    cr_expect_str_eq(image_module(&image, image.totals[1].module), "/lib/b.so");
    cr_expect_eq(image_peak(&image), 4696, "never less than what is live");
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_ledger, keeps_what_was_inherited_apart) {
    struct builder builder;
    two_sites(&builder);
    builder_header(&builder)->flags = SNAP_FORK_CHILD;
    builder_header(&builder)->inherited_bytes = 5000;
    builder_counter(&builder, 2, SNAP_SITE_INHERITED, (struct snap_counter){0, 0, 2000, 4});
    builder_counter(&builder, 2, 2, (struct snap_counter){100, 1, 0, 0});
    struct image image = load(&builder);
    cr_expect_eq(image.host.live_bytes, 100);
    cr_expect_eq(image.inherited.free_bytes, 2000);
    cr_expect_eq(image.inherited.live_bytes, 3000);
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_ledger, never_holds_less_than_nothing) {
    struct builder builder;
    two_sites(&builder);
    builder_counter(&builder, 2, 2, (struct snap_counter){100, 1, 200, 2}); /* killed between two counters */
    struct image image = load(&builder);
    cr_expect_eq(image.host.live_bytes, 0);
    cr_expect_eq(image.inexact, 1);
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_ledger, counts_sites_that_have_no_record) {
    struct builder builder;
    two_sites(&builder);
    builder_counter(&builder, 2, 100000, (struct snap_counter){64, 1, 0, 0});
    struct image image = load(&builder);
    cr_expect_eq(image.host.live_bytes, 64);
    cr_expect(image.totals[0].flags & TOTAL_UNKNOWN_SITE);
    cr_expect_null(image_module(&image, image.totals[0].module));
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_ledger, lays_the_picture_of_the_peak_over_the_totals) {
    struct builder builder;
    static const uint8_t picture[] = {2, 0xbc, 5, 2, 1, 0xa0, 6, 3, 0xff}; /* 700 and 800 bytes; then an old rest */
    two_sites(&builder);
    builder_counter(&builder, 2, 2, (struct snap_counter){1, 1, 0, 0});
    builder_counter(&builder, 2, 3, (struct snap_counter){1, 1, 0, 0});
    builder_section(&builder, SNAP_PEAK_1, 1, picture, sizeof picture, 0);
    builder_header(&builder)->picture_buffer = 1;
    builder_header(&builder)->picture_length = sizeof picture - 1;
    struct image image = load(&builder);
    cr_expect(image.has_picture);
    cr_expect_eq(image.totals[0].peak_bytes, 700);
    cr_expect_eq(image.totals[0].peak_blocks, 2);
    cr_expect_eq(image.totals[1].peak_bytes, 800);
    cr_expect_eq(image.totals[1].peak_blocks, 3);
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_ledger, a_word_counts_blocks_of_one_size) {
    struct builder builder;
    two_sites(&builder);
    builder_word(&builder, 2, 2, snap_narrow(UINT32_MAX, 5, 2));
    builder_word(&builder, 3, 2, snap_narrow(UINT32_MAX, 0, 1)); /* another thread freed it */
    builder_word(&builder, 2, 3, snap_narrow(0, 1, 0));
    struct image image = load(&builder);
    cr_assert_eq(image.total_count, 2);
    cr_expect_eq(image.totals[0].alloc_bytes, 5 * (uint64_t)UINT32_MAX);
    cr_expect_eq(image.totals[0].free_bytes, 3 * (uint64_t)UINT32_MAX);
    cr_expect_eq(image.totals[0].alloc_blocks, 5);
    cr_expect_eq(image.totals[0].free_blocks, 3);
    cr_expect_eq(image.totals[1].alloc_bytes, 0);
    cr_expect_eq(image.totals[1].alloc_blocks, 1);
    image_clear(&image);
    builder_end(&builder);
}

/* The section with the wide counter was made after the reader had read the list of sections. So the counter cannot be
 * read, and the totals are marked as inexact. */
Test(reader_ledger, a_running_process_may_have_newer_counters) {
    struct builder builder;
    struct source source;
    struct image image;
    two_sites(&builder);
    builder_word(&builder, 2, 2, SNAP_WIDE_BIT | 4096);
    builder_word(&builder, 2, 3, snap_narrow(24, 1, 0));
    source_buffer(&source, builder.bytes, builder.size);
    cr_assert_eq(image_load(&image, &source, true), 0);
    cr_assert_eq(image.total_count, 1);
    cr_expect_eq(image.totals[0].alloc_bytes, 24);
    cr_expect(image.totals[0].flags & TOTAL_INEXACT);
    image_clear(&image);
    builder_end(&builder);
}

/* The process was killed while totals of dead sites were moved: its file need not add up. */
Test(reader_ledger, killed_in_the_middle_of_a_fold_is_inexact) {
    struct builder builder;
    two_sites(&builder);
    builder_word(&builder, 2, 2, snap_narrow(24, 1, 0));
    struct image whole = load(&builder);
    cr_expect_not(whole.totals[0].flags & TOTAL_INEXACT);
    builder_header(&builder)->fold_sequence = 1;
    struct image halfway = load(&builder);
    cr_expect(halfway.totals[0].flags & TOTAL_INEXACT);
    cr_expect_eq(halfway.totals[0].alloc_bytes, 24);
    image_clear(&whole);
    image_clear(&halfway);
    builder_end(&builder);
}

/* A ledger after a fold: site 2 is free. What thread 2 had counted there now counts at site 3, in the slot that all
 * threads share. */
Test(reader_ledger, leaves_out_what_free_sites_counted) {
    struct builder builder;
    struct snap_site sites[4] = {{0}, {0}, {SNAP_SITE_FREE}, snap_site(0, 0, 2)};
    struct snap_thread threads[3] = {{0}, {0}, {.total = {64, 1, 64, 1}}};
    threads[0].total = (struct snap_counter){-(uint64_t)64, -(uint64_t)1, -(uint64_t)64, -(uint64_t)1};
    builder_begin(&builder, SNAP_LEDGER);
    builder_modules(&builder);
    builder_section(&builder, SNAP_SITE, sizeof sites[0], sites, 4, 0);
    builder_section(&builder, SNAP_THREAD, sizeof threads[0], threads, 3, 0);
    builder_counter(&builder, 2, 2, (struct snap_counter){32, 1, 32, 1}); /* killed before they were emptied */
    builder_counter(&builder, 0, 3, (struct snap_counter){64, 1, 64, 1});
    builder_counter(&builder, 2, 3, (struct snap_counter){8, 1, 0, 0});
    struct image image = load(&builder);
    cr_assert_eq(image.total_count, 1);
    cr_expect_eq(image.totals[0].alloc_bytes, 72);
    cr_expect_eq(image.host.live_bytes, 8);
    cr_expect_eq(image.threads[0].total.alloc_bytes, 0);
    cr_expect_eq(image.threads[2].total.alloc_blocks, 1 + 1 + 1);
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_ledger, leaves_out_empty_and_half_written_slots) {
    struct builder builder;
    struct snap_large large[3] = {
        {.address = 0}, {.address = 0x1001, .size = 1}, {.address = 0x2000, .size = 2, .site = 2}};
    struct snap_mapping mappings[3] = {{0}, {.sequence = 3, .length = 1}, {.sequence = 2, .length = 4096}};
    two_sites(&builder);
    builder_counter(&builder, 2, 2, (struct snap_counter){2, 1, 0, 0});
    builder_section(&builder, SNAP_LARGE, sizeof large[0], large, 3, 0);
    builder_section(&builder, SNAP_MAPPING, sizeof mappings[0], mappings, 3, 0);
    struct image image = load(&builder);
    cr_assert_eq(image.large_count, 1);
    cr_expect_eq(image.large[0].size, 2);
    cr_expect_eq(image_total(&image, image.large[0].site), &image.totals[0]);
    cr_assert_eq(image.mapping_count, 1);
    cr_expect_eq(image.mappings[0].length, 4096);
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_ledger, sums_threads) {
    struct builder builder;
    struct snap_thread threads[3] = {{0}, {0}, {.tid = 5, .name = "worker", .state = SNAP_THREAD_LIVE}};
    two_sites(&builder);
    builder_section(&builder, SNAP_THREAD, sizeof threads[0], threads, 3, 0);
    builder_counter(&builder, 2, 2, (struct snap_counter){1000, 10, 100, 1});
    builder_counter(&builder, 2, 3, (struct snap_counter){24, 1, 0, 0});
    struct image image = load(&builder);
    cr_assert_eq(image.thread_count, 3);
    cr_expect_eq(image.threads[2].total.alloc_bytes, 1024);
    cr_expect_eq(image.threads[2].total.free_blocks, 1);
    image_clear(&image);
    builder_end(&builder);
}

Test(reader_ledger, reads_a_live_ledger_alike) {
    struct builder builder;
    struct image image;
    struct source source;
    two_sites(&builder);
    builder_counter(&builder, 2, 2, (struct snap_counter){1000, 10, 100, 1});
    source_buffer(&source, builder.bytes, builder.size);
    cr_assert_eq(image_load(&image, &source, true), 0);
    cr_expect_eq(image.host.live_bytes, 900);
    cr_expect_eq(image.inexact, 0);
    cr_expect(image.running);
    image_clear(&image);
    builder_end(&builder);
}
