/* reader_misuse.c — blocks that were freed twice: in a ledger and in a snapshot of it, they have the call stacks of
 * their sites. They add nothing to the counts. */
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/reader/image_load.h"
#include "tools/reader/misuse_image.h"
#include "tools/views/stacks.h"
#include "tools/subject/writer.h"

enum { FRAME = 0, STACK = 1, KNOWN = 3, FREE = 4, NONE = 5 };

static int load(struct image *image, const uint8_t *bytes, size_t size) {
    struct source source;
    source_buffer(&source, bytes, size);
    return image_load(image, &source, false);
}

/* Site 2 has no call stack, site 3 has one, and site 4 is free. */
static void begin(struct builder *builder) {
    struct snap_site sites[5] = {{0}, {0}, snap_site(0, 0, 1), snap_site(0, STACK, 2), {SNAP_SITE_FREE}};
    struct snap_frame frame = {.address = 0x1000, .module = 1};
    struct snap_node nodes[2] = {{.segment = UINT32_MAX}, {.segment = 1}};
    uint32_t words[3] = {0, 1, FRAME};
    builder_begin(builder, SNAP_LEDGER);
    builder_modules(builder);
    builder_section(builder, SNAP_SITE, sizeof sites[0], sites, 5, 0);
    builder_section(builder, SNAP_FRAME, sizeof frame, &frame, 1, 0);
    builder_section(builder, SNAP_SEGMENT, sizeof words[0], words, 3, 0);
    builder_section(builder, SNAP_NODE, sizeof nodes[0], nodes, 2, 0);
    builder_counter(builder, 2, 2, (struct snap_counter){100, 1, 0, 0});
}

static void expect_stack(const struct image *image, const struct snap_misuse_site *site) {
    uint32_t frames[2];
    cr_assert_eq(stack_frames(image, site->stack, frames, 2), 1);
    cr_expect_eq(stack_frame(image, frames[0])->address, 0x1000);
    cr_expect_eq(site->module, 2);
}

static void expect_two(const struct image *image) {
    cr_assert_eq(image->misuse_count, 2);
    const struct snap_misuse *twice = &image->misuses[0], *damaged = &image->misuses[1];
    cr_expect(twice->address == 0x5000 && twice->size == UINT64_MAX && twice->time_ns == 7 && twice->thread == 2);
    cr_expect_str_eq(misuse_kind_name(twice), "double_free");
    expect_stack(image, &twice->sites[SNAP_MISUSE_ALLOCATED]);
    expect_stack(image, &twice->sites[SNAP_MISUSE_NOW]);
    cr_expect_eq(twice->sites[SNAP_MISUSE_FREED_FIRST].stack, 0);
    cr_expect_str_eq(misuse_kind_name(damaged), "damaged_header");
    cr_expect(damaged->size == 100 && damaged->flags == SNAP_MISUSE_HARMLESS && damaged->call == SNAP_MISUSE_REALLOC);
    cr_expect_eq(image->total_count, 1);
    cr_expect_eq(image->host.live_bytes, 100);
}

Test(reader_misuse, has_its_stacks_and_no_totals) {
    const struct snap_misuse misuses[4] = {{.kind = SNAP_MISUSE_FREED,
                                            .call = SNAP_MISUSE_FREE,
                                            .address = 0x5000,
                                            .size = UINT64_MAX,
                                            .time_ns = 7,
                                            .thread = 2,
                                            .sites = {{.site = KNOWN}, {0}, {.site = KNOWN}}},
                                           {0},
                                           {.kind = SNAP_MISUSE_DAMAGED,
                                            .call = SNAP_MISUSE_REALLOC,
                                            .flags = SNAP_MISUSE_HARMLESS,
                                            .size = 100,
                                            .sites = {{.site = FREE}, {.site = NONE}, {.site = UINT32_MAX}}},
                                           {0}};
    struct builder builder;
    struct image image, again;
    char *bytes = NULL;
    size_t size = 0;
    begin(&builder);
    builder_section(&builder, SNAP_MISUSE, sizeof misuses[0], misuses, 4, 0);
    cr_assert_eq(load(&image, builder.bytes, builder.size), 0, "%s", image.error);
    builder_end(&builder);
    expect_two(&image);
    for (int i = 0; i < SNAP_MISUSE_SITES; i++) cr_expect_eq(image.misuses[1].sites[i].stack, 0, "site %d", i);
    FILE *to = open_memstream(&bytes, &size);
    cr_assert(to && writer_snapshot(&image, to) == 0);
    fclose(to);
    image_clear(&image);
    cr_assert_eq(load(&again, (uint8_t *)bytes, size), 0, "%s", again.error);
    expect_two(&again);
    image_clear(&again);
    free(bytes);
}

Test(reader_misuse, nothing_in_it_is_believed) {
    struct snap_misuse odd[100];
    struct builder builder;
    struct image image;
    memset(odd, 0xFF, sizeof odd);
    for (uint32_t i = 0; i < 100; i++) odd[i].kind = 100 + i;
    begin(&builder);
    builder_section(&builder, SNAP_MISUSE, sizeof odd[0], odd, 100, 0);
    cr_assert_eq(load(&image, builder.bytes, builder.size), 0, "%s", image.error);
    builder_end(&builder);
    cr_assert_eq(image.misuse_count, SNAP_MISUSES, "as many as a process notes");
    cr_expect_str_eq(misuse_kind_name(&image.misuses[0]), "unknown");
    cr_expect(*misuse_words(&image.misuses[0]));
    cr_expect_eq(image.misuses[0].sites[0].stack, 0);
    image_clear(&image);
}
