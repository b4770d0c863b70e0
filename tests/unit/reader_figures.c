/* reader_figures.c — the figures of a ledger are the same if it is read without the parts that only people look at. */
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/reader/image_load.h"

/* A ledger with a block of a model (with a stack), a mapping, the curve of memory, and the start of a thread. */
static void build(struct builder *builder) {
    const struct snap_frame frame = {.address = 0x10, .module = 1};
    const uint32_t words[] = {0, 0, SNAP_RUN_FIRST | SNAP_RUN_LAST | SNAP_RUN_END};
    const struct snap_site sites[] = {{0}, {0}, snap_site(1, 2, 1), snap_site(0, 0, 2)};
    const struct snap_tag tags[] = {{0}, {.model = 7}};
    const struct snap_owner owner = {.id = 7, .kind = SNAP_OWNER_MODEL, .name = 1, .state = SNAP_OWNER_LIVE};
    const struct snap_thread threads[3] = {{.stack_start = 0}};
    const struct snap_point point = {.time_ns = 2000, .host = 200};
    const struct snap_origin start = {.kind = SNAP_ORIGIN_OF_THREAD};
    builder_begin(builder, SNAP_LEDGER);
    builder_header(builder)->start_ns = 1000;
    builder_header(builder)->end_ns = 9000;
    builder_modules(builder);
    builder_section(builder, SNAP_FRAME, sizeof frame, &frame, 1, 0);
    builder_section(builder, SNAP_RUN, sizeof words[0], words, 3, 0);
    builder_section(builder, SNAP_TAG, sizeof tags[0], tags, 2, 0);
    builder_section(builder, SNAP_OWNER, sizeof owner, &owner, 1, 0);
    builder_section(builder, SNAP_SITE, sizeof sites[0], sites, 4, 0);
    builder_section(builder, SNAP_THREAD, sizeof threads[0], threads, 3, 0);
    builder_section(builder, SNAP_POINT, sizeof point, &point, 1, 0);
    builder_section(builder, SNAP_START, sizeof start, &start, 1, 0);
    builder_counter(builder, SNAP_THREAD_FIRST, 2, (struct snap_counter){300, 3, 100, 1});
    builder_counter(builder, SNAP_THREAD_MAPPINGS, 3, (struct snap_counter){8192, 2, 4096, 1});
}

static void load(struct image *image, const struct builder *builder,
                 int (*by)(struct image *image, struct source *source, bool live)) {
    struct source source;
    source_buffer(&source, builder->bytes, builder->size);
    cr_assert_eq(by(image, &source, false), 0, "%s", image->error);
}

Test(reader_figures, are_those_of_the_whole_image) {
    struct builder builder;
    struct image whole, figures;
    build(&builder);
    load(&whole, &builder, image_load);
    load(&figures, &builder, image_load_figures);
    cr_expect(whole.host.live_bytes == 200 && whole.mapped.live_bytes == 4096);
    cr_expect_arr_eq(&figures.host, &whole.host, sizeof whole.host);
    cr_expect_arr_eq(&figures.mapped, &whole.mapped, sizeof whole.mapped);
    cr_assert_eq(figures.total_count, 2);
    for (size_t i = 0; i < 2; i++) {
        cr_expect_eq(image_tag(&figures, figures.totals[i].tag)->model, image_tag(&whole, whole.totals[i].tag)->model);
        cr_expect_eq(figures.totals[i].module, whole.totals[i].module);
    }
    cr_expect_str_eq(image_owner_name(&figures, 7), "/bin/a");
    cr_expect_eq(figures.thread_count, 3, "their stacks are part of resident memory");
    cr_expect(whole.node_count > 1 && whole.frame_count && whole.point_count && whole.origin_count);
    cr_expect(!figures.node_count && !figures.frame_count && !figures.point_count && !figures.origin_count);
    image_clear(&whole);
    image_clear(&figures);
    builder_end(&builder);
}
