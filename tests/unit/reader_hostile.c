/* reader_hostile.c — no length, count, offset or number of a file is trusted. */
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/reader/image_load.h"
#include "tools/reader/trace_lines.h"

static void expect_error(struct builder *builder, const char *start) {
    struct image image;
    struct source source;
    source_buffer(&source, builder->bytes, builder->size);
    cr_expect_eq(image_load(&image, &source, false), -1);
    cr_expect(strncmp(image.error, start, strlen(start)) == 0, "\"%s\" is not \"%s…\"", image.error, start);
    image_clear(&image);
    builder_end(builder);
}

Test(reader_hostile, empty_and_foreign) {
    struct builder builder;
    builder_begin(&builder, SNAP_LEDGER);
    builder.size = 0;
    expect_error(&builder, "empty");
    builder_begin(&builder, SNAP_LEDGER);
    builder.bytes[0] = 'm';
    expect_error(&builder, "not a memstow file");
    builder_begin(&builder, SNAP_LEDGER);
    builder.size = 5;
    expect_error(&builder, "not a memstow file");
}

/* A file that is cut anywhere is refused with a message. */
Test(reader_hostile, truncated_anywhere) {
    struct builder builder;
    builder_begin(&builder, SNAP_LEDGER);
    builder_modules(&builder);
    builder_counter(&builder, 2, 2, (struct snap_counter){5, 1, 0, 0});
    for (size_t size = 8; size < builder.size; size += size < 400 ? 1 : 61) {
        struct image image;
        struct source source;
        uint8_t *copy = malloc(size); /* exactly as long, so that a sanitizer notices each byte beyond the end */
        memcpy(copy, builder.bytes, size);
        source_buffer(&source, copy, size);
        cr_expect_eq(image_load(&image, &source, false), -1, "at %zu", size);
        cr_expect(strncmp(image.error, "truncated", 9) == 0 || strncmp(image.error, "damaged", 7) == 0 ||
                      strncmp(image.error, "not a", 5) == 0,
                  "at %zu: %s", size, image.error);
        free(copy);
    }
    builder_end(&builder);
}

Test(reader_hostile, header_that_does_not_add_up) {
    struct builder builder;
    builder_begin(&builder, SNAP_LEDGER);
    builder_header(&builder)->header_size = 8;
    expect_error(&builder, "damaged");
    builder_begin(&builder, SNAP_LEDGER);
    builder_header(&builder)->size = 16;
    expect_error(&builder, "damaged");
    builder_begin(&builder, SNAP_LEDGER);
    builder_header(&builder)->size = UINT64_MAX;
    expect_error(&builder, "truncated");
}

Test(reader_hostile, section_lengths) {
    static const uint64_t lengths[] = {0, 1, 31, 1 << 20, UINT64_MAX, UINT64_MAX - 31, INT64_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct builder builder;
        struct snap_tag tag = {0};
        builder_begin(&builder, SNAP_LEDGER);
        size_t offset = builder_section(&builder, SNAP_TAG, sizeof tag, &tag, 1, 0);
        builder_head(&builder, offset)->length = lengths[i];
        expect_error(&builder, "damaged at byte 4");
    }
}

Test(reader_hostile, counts_and_record_sizes) {
    struct snap_tag tag = {0};
    static const uint64_t counts[] = {2, UINT64_MAX, UINT64_MAX / sizeof tag + 2};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct builder builder;
        builder_begin(&builder, SNAP_LEDGER);
        size_t offset = builder_section(&builder, SNAP_TAG, sizeof tag, &tag, 1, 0);
        builder_head(&builder, offset)->count = counts[i];
        expect_error(&builder, "damaged");
    }
    for (uint16_t size = 0; size < sizeof tag; size++) {
        struct builder builder;
        builder_begin(&builder, SNAP_LEDGER);
        size_t offset = builder_section(&builder, SNAP_TAG, sizeof tag, &tag, 1, 0);
        builder_head(&builder, offset)->record_size = size;
        expect_error(&builder, "damaged");
    }
}

Test(reader_hostile, ids_with_gaps) {
    static const uint64_t firsts[] = {1, UINT64_C(1) << 40, UINT64_MAX};
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        struct builder builder;
        struct snap_tag tag = {0};
        builder_begin(&builder, SNAP_LEDGER);
        builder_section(&builder, SNAP_TAG, sizeof tag, &tag, 1, firsts[i]);
        expect_error(&builder, "damaged");
    }
}

Test(reader_hostile, references_lead_nowhere) {
    struct builder builder;
    struct image image;
    struct source source;
    struct snap_site sites[3] = {{0}, {0}, snap_site(99, 0, 77)};
    struct snap_tag tag = {.model = 5};
    struct snap_owner owner = {.id = 5, .kind = 99, .name = UINT32_MAX, .origin = 1000};
    struct snap_module module = {.path = 0xfffffff0};
    struct snap_fact fact = {SNAP_FACT_COMMAND, 123456};
    struct snap_large large = {.address = 4096, .size = 1, .site = 123456};
    builder_begin(&builder, SNAP_LEDGER);
    memset(builder_header(&builder)->name, 'n', sizeof builder_header(&builder)->name);
    builder_section(&builder, SNAP_SITE, sizeof sites[0], sites, 3, 0);
    builder_section(&builder, SNAP_TAG, sizeof tag, &tag, 1, 0);
    builder_section(&builder, SNAP_OWNER, sizeof owner, &owner, 1, 0);
    builder_section(&builder, SNAP_MODULE, sizeof module, &module, 1, 0);
    builder_section(&builder, SNAP_PROCESS, sizeof fact, &fact, 1, 0);
    builder_section(&builder, SNAP_LARGE, sizeof large, &large, 1, 0);
    builder_counter(&builder, 1000000, 2, (struct snap_counter){5, 1, 0, 0});
    source_buffer(&source, builder.bytes, builder.size);
    cr_assert_eq(image_load(&image, &source, false), 0, "%s", image.error);
    cr_expect_null(image_module(&image, image.totals[0].module));
    cr_expect_null(image_module(&image, 1));
    cr_expect_eq(image_tag(&image, 99)->model, 0);
    cr_expect_str_eq(image_string(&image, image_owner(&image, 5)->name), "");
    cr_expect_str_eq(image_fact(&image, SNAP_FACT_COMMAND), "");
    cr_expect_null(image_total(&image, image.large[0].site));
    cr_expect_eq(strlen(image.header.name), sizeof image.header.name - 1);
    image_clear(&image);
    builder_end(&builder);
}

/* A circle, an owner that does not exist, and a chain. */
Test(reader_hostile, adoptions_lead_nowhere) {
    struct snap_owner owners[] = {{.id = 1, .adopted_by = 2}, {.id = 2, .adopted_by = 1}, {.id = 3, .adopted_by = 99},
                                  {.id = 4, .adopted_by = 5}, {.id = 5, .adopted_by = 6}, {.id = 6}};
    struct image image = {.owners = owners, .owner_count = 6};
    uint32_t ring = image_final_owner(&image, 1);
    cr_expect(ring == 1 || ring == 2);
    cr_expect_leq(image_heir(&image, 1)->id, 2);
    cr_expect_eq(image_heir(&image, 3)->id, 3);
    cr_expect_eq(image_final_owner(&image, 3), 99);
    cr_expect_eq(image_heir(&image, 4)->id, 6);
    cr_expect_eq(image_final_owner(&image, 4), 6);
    cr_expect_null(image_heir(&image, 77));
    cr_expect_eq(image_final_owner(&image, 77), 77);
    cr_expect_null(image_owner_name(&image, 1ull << 32 | 6), "no owner has so large an id");
}

Test(reader_hostile, strings_without_an_end) {
    struct builder builder;
    struct image image;
    struct source source;
    struct snap_fact fact = {SNAP_FACT_EXE, 1};
    builder_begin(&builder, SNAP_LEDGER);
    builder_section(&builder, SNAP_STRINGS, 1, "\0abcdefg", 8, 0);
    builder_section(&builder, SNAP_PROCESS, sizeof fact, &fact, 1, 0);
    source_buffer(&source, builder.bytes, builder.size);
    cr_assert_eq(image_load(&image, &source, false), 0);
    cr_expect_str_eq(image_fact(&image, SNAP_FACT_EXE), "abcdefg");
    image_clear(&image);
    builder_end(&builder);
}

/* Memory that was read before the error is freed once. */
Test(reader_hostile, stacks_with_a_gap) {
    struct builder builder;
    struct snap_node node = {0};
    builder_begin(&builder, SNAP_SNAPSHOT);
    builder_section(&builder, SNAP_NODE, sizeof node, &node, 1, 5);
    expect_error(&builder, "damaged");
}

Test(reader_hostile, counters_of_an_impossible_site) {
    struct builder builder;
    struct snap_chunk chunk = {.thread = 1, .index = UINT32_MAX};
    builder_begin(&builder, SNAP_LEDGER);
    builder_section(&builder, SNAP_COUNTERS, sizeof chunk, &chunk, 1, 0);
    expect_error(&builder, "damaged");
}

/* Builds a ledger whose trace has one line of 7 bytes. `length` is the length in the line's head, and `ring` is the
 * head of the trace. A test makes one of them wrong. */
static void trace_with(struct builder *builder, struct snap_ring ring, uint32_t length) {
    static uint8_t bytes[sizeof ring + 128];
    struct snap_line head = {.length = length, .number = 1, .check = snap_line_check(1, "{\"n\":1}", 7)};
    memcpy(bytes, &ring, sizeof ring);
    memcpy(bytes + sizeof ring, &head, sizeof head);
    memcpy(bytes + sizeof ring + sizeof head, "{\"n\":1}", 7);
    builder_begin(builder, SNAP_LEDGER);
    builder_section(builder, SNAP_TRACE, 1, bytes, sizeof bytes, 0);
}

Test(reader_hostile, traces_that_do_not_add_up) {
    static const struct snap_ring rings[] = {
        {.capacity = 129, .end = 24},
        {.capacity = 136, .end = 24},
        {.capacity = UINT64_MAX - 7, .end = 24},
        {.capacity = 120, .end = 128},
        {.capacity = 128, .start = 32, .end = 24},
        {.capacity = 128, .start = 1, .end = 25},
        {.capacity = 128, .start = UINT64_MAX - 7, .end = 16},
        {.capacity = 128, .end = 23},
    };
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        struct builder builder;
        trace_with(&builder, rings[i], 7);
        expect_error(&builder, "damaged at byte 4128: a trace that does not add up");
    }
}

static size_t lines_of(struct builder *builder) {
    struct image image;
    struct source source;
    struct trace_line line;
    size_t at = 0, count = 0;
    source_buffer(&source, builder->bytes, builder->size);
    cr_assert_eq(image_load(&image, &source, false), 0, "%s", image.error);
    while (trace_lines_next(&image, &at, &line)) count++;
    image_clear(&image);
    builder_end(builder);
    return count;
}

Test(reader_hostile, lines_that_are_not_whole) {
    static const uint32_t lengths[] = {0, 6, 8, SNAP_LINE_MOST + 1, UINT32_MAX, UINT32_MAX - 15};
    static const struct snap_ring ring = {.capacity = 128, .end = 24};
    struct builder builder;
    trace_with(&builder, ring, 7);
    cr_expect_eq(lines_of(&builder), 1);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        trace_with(&builder, ring, lengths[i]);
        cr_expect_eq(lines_of(&builder), 0, "%u", lengths[i]);
    }
    for (int i = 0; i < 23; i++) { /* one bit of each byte, except the padding */
        trace_with(&builder, ring, 7);
        builder.bytes[SNAP_HEADER_SIZE + sizeof(struct snap_section) + sizeof ring + (size_t)i] ^= 1;
        cr_expect_eq(lines_of(&builder), 0, "byte %d", i);
    }
    trace_with(&builder, (struct snap_ring){.capacity = 128, .end = 16}, 7);
    cr_expect_eq(lines_of(&builder), 0);
    trace_with(&builder, (struct snap_ring){.capacity = 128, .start = 128, .end = 152}, 7);
    cr_expect_eq(lines_of(&builder), 1, "a place is a position modulo the capacity");
    trace_with(&builder, (struct snap_ring){0}, 7);
    cr_expect_eq(lines_of(&builder), 0, "not begun yet");
}

static void expect_no_counter(uint64_t word) {
    struct builder builder;
    struct snap_counter records[2] = {{.alloc_bytes = 4096}, {5, 1, 0, 0}};
    builder_begin(&builder, SNAP_LEDGER);
    builder_word(&builder, 2, 2, SNAP_WIDE_BIT | word);
    builder_section(&builder, SNAP_WIDE, sizeof records[0], records, 2, 0);
    expect_error(&builder, "damaged at byte 4128: a counter that is not there");
}

Test(reader_hostile, counters_that_are_not_there) {
    expect_no_counter(0);
    expect_no_counter(4096); /* the first record is no counter */
    expect_no_counter(4096 + 33);
    expect_no_counter(4096 + 64);
    expect_no_counter(~SNAP_WIDE_BIT);
}
