/* frameprint.c — a later image of the same ledger begins with the frames of the earlier image, also when the ledger has
 * grown. No other image does. */
#include <criterion/criterion.h>

#include "tools/symbols/frameprint.h"

static struct snap_frame frames[3] = {{.address = 0x1010, .module = 1}, {.line = 7, .code = 1}, {.address = 0x99}};
static struct snap_code codes[2] = {{.name = 1, .file = 8}, {.name = 3, .file = 8}};
static struct snap_module modules[2] = {{.path = 1, .bias = 0x1000, .build_id = {1, 2}}, {.path = 8}};

static struct image image_with(size_t frame_count, size_t code_count, size_t module_count) {
    return (struct image){.frames = frames,
                          .frame_count = frame_count,
                          .codes = codes,
                          .code_count = code_count,
                          .modules = modules,
                          .module_count = module_count};
}

static bool fits_with(struct frameprint print) {
    struct image now = image_with(3, 2, 2);
    return frameprint_fits(&print, &now);
}

Test(frameprint, the_same_and_what_has_grown_fit) {
    struct image whole = image_with(3, 2, 2), early = image_with(1, 1, 1), empty = image_with(0, 0, 0);
    cr_assert(fits_with(frameprint_of(&whole)));
    cr_assert(fits_with(frameprint_of(&early)));
    cr_assert(fits_with(frameprint_of(&empty)));
    struct frameprint print = frameprint_of(&whole);
    cr_assert_not(frameprint_fits(&print, &early), "an image with less is another one");
}

Test(frameprint, each_part_that_names_depend_on_counts) {
    struct image early = image_with(2, 1, 1);
    struct frameprint print = frameprint_of(&early);
    uint64_t *const parts[] = {&frames[0].address, &modules[0].bias};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        *parts[i] += 1;
        cr_assert_not(fits_with(print), "part %zu", i);
        *parts[i] -= 1;
    }
    modules[0].build_id[23] = 1;
    cr_assert_not(fits_with(print));
    modules[0].build_id[23] = 0;
    codes[0].name = 2;
    cr_assert_not(fits_with(print));
    codes[0].name = 1;
    frames[1].line = 8;
    cr_assert_not(fits_with(print));
    frames[1].line = 7;
    cr_assert(fits_with(print));
}

Test(frameprint, what_changes_while_a_program_runs_does_not_count) {
    struct image early = image_with(2, 1, 1);
    struct frameprint print = frameprint_of(&early);
    modules[0].flags = 5;     /* the module is unloaded */
    frames[2].address = 0x98; /* not in the early image */
    cr_assert(fits_with(print));
}
