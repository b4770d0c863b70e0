// CUPTI's part of a file: the differences and their libraries are read, and are the same after they were written to a
// snapshot and read again. No field is trusted.
#include <criterion/criterion.h>

#include "builder.h"
#include "tools/reader/cupti_image.h"
#include "tools/reader/image_load.h"
#include "tools/subject/writer.h"

static struct snap_cupti_block difference(uint32_t state, uint64_t bytes, const char *source) {
    struct snap_cupti_block block = {.state = state, .kind = 60000, .bytes = bytes};
    snprintf(block.source, sizeof block.source, "%s", source);
    return block;
}

static void build(struct builder *builder, const struct snap_cupti *head) {
    struct snap_cupti_block blocks[] = {{0},
                                        difference(SNAP_CUPTI_ONLY_CUPTI, 10, "/lib/a.so"),
                                        difference(SNAP_CUPTI_ONLY_CUPTI, 30, "/lib/b.so"),
                                        difference(SNAP_CUPTI_ONLY_CUPTI, 25, "/lib/a.so"),
                                        difference(SNAP_CUPTI_ONLY_LEDGER, 0, ""),
                                        difference(4000000000u, 1, "no difference"),
                                        difference(SNAP_CUPTI_SIZES, UINT64_MAX, "")};
    memset(blocks[6].source, 'z', sizeof blocks[6].source);
    builder_begin(builder, SNAP_LEDGER);
    builder_modules(builder);
    builder_section(builder, SNAP_CUPTI, sizeof *head, head, 1, 0);
    builder_section(builder, SNAP_CUPTI_BLOCK, sizeof *blocks, blocks, 7, 0);
}

static void check(struct image *image) {
    const struct cupti_image *cupti = &image->cupti;
    size_t count;
    struct cupti_source *sources = cupti_sources(cupti, &count);
    char text[CUPTI_SENTENCE];
    cr_assert(sources && cupti->asked);
    cr_expect_eq(cupti->block_count, 5);
    cr_expect_eq(strlen(cupti->blocks[4].source), sizeof cupti->blocks->source - 1);
    cr_expect_eq(strlen(cupti->head.library), sizeof cupti->head.library - 1);
    cr_expect_eq(strlen(cupti->head.call), sizeof cupti->head.call - 1);
    cr_assert_eq(count, 2);
    cr_expect(strcmp(sources[0].path, "/lib/a.so") == 0 && sources[0].bytes == 35 && sources[0].blocks == 2);
    cr_expect_lt(strlen(cupti_sentence(image, text)), sizeof text);
    free(sources);
}

static void load(struct image *image, const uint8_t *bytes, size_t size) {
    struct source source;
    source_buffer(&source, bytes, size);
    cr_assert_eq(image_load(image, &source, false), 0, "%s", image->error);
}

Test(reader_cupti, back_through_a_snapshot) {
    struct snap_cupti head = {.state = SNAP_CUPTI_COMPARED, .only_cupti = {3, 65}, .dropped = UINT64_MAX};
    struct builder builder;
    struct image image, back;
    char *written = NULL;
    size_t length = 0;
    memset(head.call, 'x', sizeof head.call);
    memset(head.library, 'y', sizeof head.library);
    build(&builder, &head);
    load(&image, builder.bytes, builder.size);
    check(&image);
    FILE *to = open_memstream(&written, &length);
    cr_assert(to && writer_snapshot(&image, to) == 0);
    fclose(to);
    load(&back, (const uint8_t *)written, length);
    check(&back);
    image_clear(&back);
    image_clear(&image);
    free(written);
    builder_end(&builder);
}

Test(reader_cupti, each_state_has_a_sentence) {
    char text[CUPTI_SENTENCE];
    cr_expect(strstr(cupti_sentence(&(struct image){0}, text), "CUDA did not begin"));
    for (uint32_t state = 0; state < 10; state++) {
        struct image image = {
            .cupti = {.asked = true, .head = {.state = state, .result = UINT32_MAX, .call = "\033[31m"}}};
        cr_expect_gt(strlen(cupti_sentence(&image, text)), 10, "state %u", state);
        cr_expect_not(strchr(text, '\033'), "state %u", state);
    }
}
