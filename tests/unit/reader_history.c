/* reader_history.c — memory over time in a ledger, and in a snapshot of it: the points are in order, each is there
 * once, and impossible ones are left out. */
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/reader/image_load.h"
#include "tools/subject/writer.h"
#include "tools/views/history.h"

enum { START = 1000 };

static int load(struct image *image, const uint8_t *bytes, size_t size) {
    struct source source;
    source_buffer(&source, bytes, size);
    return image_load(image, &source, false);
}

static void begin(struct builder *builder) {
    builder_begin(builder, SNAP_LEDGER);
    builder_header(builder)->start_ns = START;
    builder_header(builder)->end_ns = 9000;
    builder_header(builder)->state = SNAP_EXITED;
    builder_header(builder)->total_peak = 80;
    builder_header(builder)->total_peak_ns = 4000;
}

/* The writer was killed while it made room: points are there twice, one is empty, and their order is lost. */
static const struct snap_point killed[] = {
    {.time_ns = 3000, .host = 50, .mapped = 5}, {.time_ns = 2000, .host = 10}, {0},
    {.time_ns = 3000, .host = 50, .mapped = 5}, {.time_ns = 4000, .host = 80},
};
static const struct snap_point impossible[] = {
    {.time_ns = START - 1, .host = 1},
    {.time_ns = 5000, .host = UINT64_MAX},
    {.time_ns = 5001, .mapped = UINT64_MAX / 2},
};
static const struct snap_cuda_point on_devices[] = {
    {.time_ns = 2500, .live = {7, 8}}, {.time_ns = 2600, .live = {[7] = UINT64_MAX}}, {0}};
static const struct snap_mark marks[] = {
    {.time_ns = 6000, .kind = SNAP_MARK_STOWED, .owner = 77, .bytes = 3, .live = SNAP_MARK_UNKNOWN},
    {.time_ns = 5000, .kind = SNAP_MARK_OUT_OF_MEMORY, .detail = UINT32_MAX},
    {.time_ns = 5000, .kind = SNAP_MARK_TRIGGER, .detail = UINT32_MAX},
    {.time_ns = 5500, .kind = SNAP_MARK_RUN_ENDED, .detail = UINT32_MAX},
    {.time_ns = 5000, .kind = SNAP_MARK_KINDS},
    {.time_ns = 5000, .kind = UINT32_MAX},
    {.time_ns = 5000},
    {.time_ns = 5000, .kind = SNAP_MARK_CAME, .bytes = UINT64_MAX},
    {.time_ns = 1, .kind = SNAP_MARK_CAME},
};
static const struct snap_owner_mark owner_marks[] = {
    {.time_ns = 6000, .owner = 2, .live = 30},
    {.time_ns = 5500, .owner = 77, .live = 20},
    {.time_ns = 5500, .owner = 2, .live = 40, .on_devices = 9},
    {.time_ns = 5500, .live = 1},
    {.time_ns = 5500, .owner = 3, .live = UINT64_MAX},
    {.owner = 3, .live = 1},
    {.time_ns = 1, .owner = 3, .live = 1},
};
#define SECTION(builder, type, records)                                                                                \
    builder_section(builder, type, sizeof *(records), records, sizeof(records) / sizeof *(records), 0)

static void expect_sound(const struct image *image) {
    cr_assert_eq(image->point_count, 3);
    for (uint64_t i = 0; i < 3; i++) cr_expect_eq(image->points[i].time_ns, 2000 + 1000 * i);
    cr_expect(image->points[1].host == 50 && image->points[1].mapped == 5);
    cr_assert_eq(image->cuda_point_count, 1);
    cr_expect(image->cuda_points[0].live[0] == 7 && image->cuda_points[0].live[1] == 8);
    cr_assert_eq(image->mark_count, 4);
    cr_expect_eq(image->marks[3].kind, SNAP_MARK_STOWED);
    cr_assert_eq(image->owner_mark_count, 3);
    cr_expect_eq(image->owner_marks[2].live, 30);
}

/* Checks the history that every form of a report shows. It also has the present, the peak, and words for an owner that
 * is not known. */
static void expect_history(const struct image *image) {
    struct history history;
    cr_assert_eq(history_make(&history, image), 0);
    cr_expect_eq(history.point_count, 4);
    cr_expect_eq(history.points[3].time_ns, 9000);
    cr_expect_eq(history.points[3].host, 0);
    cr_assert_eq(history.mark_count, 5);
    cr_expect_str_eq(history_kind(&history.marks[0]), "peak");
    cr_expect_eq(history.marks[0].bytes, 80);
    cr_expect_str_eq(history_words(&history, &history.marks[4]).s, "an unknown owner stowed");
    for (size_t i = 0; i < history.mark_count; i++) cr_expect_null(history_detail(&history.marks[i]));
    cr_expect_eq(history.end_ns, 9000);
    static const uint64_t live[] = {40, 30, 20};
    cr_assert_eq(history.owner_mark_count, 3);
    for (size_t i = 0; i < 3; i++) cr_expect_eq(history.owner_marks[i].live, live[i], "by owner, then by time");
    history_clear(&history);
}

Test(reader_history, is_sound_in_a_ledger_and_its_snapshot) {
    struct builder builder;
    struct image image, copy;
    char *bytes;
    size_t size;
    begin(&builder);
    SECTION(&builder, SNAP_POINT, killed);
    builder_section(&builder, SNAP_POINT, sizeof *impossible, impossible, 3, 5);
    SECTION(&builder, SNAP_CUDA_POINT, on_devices);
    SECTION(&builder, SNAP_MARK, marks);
    SECTION(&builder, SNAP_OWNER_MARK, owner_marks);
    cr_assert_eq(load(&image, builder.bytes, builder.size), 0, "%s", image.error);
    expect_sound(&image);
    expect_history(&image);
    FILE *to = open_memstream(&bytes, &size);
    cr_assert_eq(writer_snapshot(&image, to), 0);
    fclose(to);
    cr_assert_eq(load(&copy, (uint8_t *)bytes, size), 0, "%s", copy.error);
    expect_sound(&copy);
    image_clear(&image);
    image_clear(&copy);
    free(bytes);
    builder_end(&builder);
}

Test(reader_history, of_a_killed_process_ends_with_its_last_point) {
    struct builder builder;
    struct image image;
    struct history history;
    begin(&builder);
    builder_header(&builder)->end_ns = 0;
    builder_header(&builder)->state = SNAP_RUNNING;
    SECTION(&builder, SNAP_POINT, killed);
    cr_assert_eq(load(&image, builder.bytes, builder.size), 0, "%s", image.error);
    cr_assert_eq(history_make(&history, &image), 0);
    cr_assert_eq(history.point_count, 4);
    cr_expect(history.points[3].time_ns == 4000 && history.points[3].host == 0, "as the counters say");
    cr_expect_eq(history.end_ns, 4000);
    history_clear(&history);
    image_clear(&image);
    builder_end(&builder);
}
