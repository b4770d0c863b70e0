/* reader_runs.c — stacks that a process keeps as runs of frames become nodes. No word of them is trusted. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tools/image/runs.h"
#include "tools/views/stacks.h"

#define FIRST SNAP_RUN_FIRST
#define LAST SNAP_RUN_LAST
#define NONE SNAP_RUN_FRAME

/* Place 0: the root. Places 4 to 6: frames 1 to 3. Places 9 and 10: frames 4 and 5, inside of place 5. Place 13: the
 * stack that ends at place 5. */
static const uint32_t words[] = {FIRST | LAST | NONE, 0,        0, 7, FIRST | 1,          2, LAST | 3, 5, 8,
                                 FIRST | 4,           LAST | 5, 5, 9, FIRST | LAST | NONE};
enum { WORDS = sizeof words / sizeof *words };

static void unfold(struct image *image, const uint32_t *run, size_t count, const uint32_t *stacks, size_t stack_count) {
    *image = (struct image){.words = malloc(count * sizeof *run), .word_count = count};
    memcpy(image->words, run, count * sizeof *run);
    image->totals = calloc(stack_count, sizeof *image->totals);
    image->total_count = stack_count;
    for (size_t i = 0; i < stack_count; i++) image->totals[i].stack = stacks[i];
    cr_assert_eq(runs_unfold(image), 0);
    for (size_t i = 1; i < image->node_count; i++) cr_assert_lt(image->nodes[i].parent, i, "parents first");
    for (size_t i = 0; i < stack_count; i++) cr_assert_lt(image->totals[i].stack, image->node_count);
}

static void expect(const struct image *image, size_t total, const char *expected) {
    uint32_t frames[16];
    char text[17] = "";
    size_t count = stack_frames(image, image->totals[total].stack, frames, 16);
    for (size_t i = 0; i < count; i++) text[i] = (char)('0' + frames[i]);
    cr_expect_str_eq(text, expected);
}

Test(reader_runs, innermost_first) {
    static const uint32_t stacks[] = {6, 10, 13, 0, 5, 9};
    struct image image;
    unfold(&image, words, WORDS, stacks, 6);
    expect(&image, 0, "321");
    expect(&image, 1, "5421");
    expect(&image, 2, "21");
    expect(&image, 3, "");
    expect(&image, 4, "21");
    expect(&image, 5, "421");
    image_clear(&image);
}

Test(reader_runs, only_what_totals_have) {
    static const uint32_t stack = 6;
    struct image image;
    unfold(&image, words, WORDS, &stack, 1);
    cr_expect_eq(image.node_count, 2, "the root, and one in one piece");
    expect(&image, 0, "321");
    image_clear(&image);
}

Test(reader_runs, round_in_a_circle) {
    static const uint32_t circle[] = {FIRST | LAST | NONE, 0, 8, 0, FIRST | 1, LAST | 2, 5, 0, FIRST | LAST | 3};
    static const uint32_t stacks[] = {5, 8}, self[] = {FIRST | LAST | NONE, 0, 4, 0, FIRST | LAST | 1};
    struct image image;
    unfold(&image, circle, 9, stacks, 2);
    image_clear(&image);
    unfold(&image, self, 5, &(uint32_t){4}, 1);
    expect(&image, 0, "1");
    image_clear(&image);
}

Test(reader_runs, leads_nowhere) {
    static const uint32_t stacks[] = {1, 2, 3, 4, 5, 100, UINT32_MAX, 1u << 24};
    static const uint32_t far[] = {FIRST | LAST | NONE, 0, UINT32_MAX, 0, FIRST | 7, LAST | 8};
    static const uint32_t headless[] = {1, 2, 3, 4, 5, 6};
    struct image image;
    unfold(&image, far, 6, stacks, 8);
    expect(&image, 4, "87");
    expect(&image, 5, "");
    image_clear(&image);
    unfold(&image, headless, 6, stacks, 8);
    image_clear(&image);
}

/* With random words, too, the conversion ends, and each node comes after its parent. */
Test(reader_runs, any_words) {
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        uint32_t any[24], stacks[6];
        for (size_t i = 0; i < 24; i++) {
            any[i] = (uint32_t)rand_r(&seed) % 26;
            if (rand_r(&seed) % 3 == 0) any[i] |= FIRST;
            if (rand_r(&seed) % 3 == 0) any[i] |= LAST;
            if (rand_r(&seed) % 16 == 0) any[i] |= NONE;
        }
        for (size_t i = 0; i < 6; i++) stacks[i] = (uint32_t)rand_r(&seed) % 26;
        struct image image;
        unfold(&image, any, 24, stacks, 6);
        image_clear(&image);
    }
}
