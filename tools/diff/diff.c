/* diff.c — see diff.h. */
#include "tools/diff/diff.h"

#include "tools/base/complain.h"
#include "tools/symbols/symbols.h"

const struct image *diff_image(struct diff *diff, int side) {
    struct subject *subject = &diff->subject[side];
    if (diff->gone[side]) return NULL;
    diff->gone[side] = !diff->loaded[side] && subject_open(subject, diff->argument[side], false) != EXIT_FINE;
    if (diff->gone[side]) return NULL;
    diff->loaded[side] = true;
    image_drop_totals(&subject->image);
    return &subject->image;
}

const struct image *diff_stacks(struct diff *diff, const struct row *row) {
    int side = (int)row->stack_side;
    const struct image *image = row->stack ? diff_image(diff, side) : NULL;
    if (image && !diff->symbols[side]) diff->symbols[side] = symbols_begin(image, diff->subject[side].pid);
    return diff->symbols[side] ? image : NULL;
}

int64_t diff_grown_bytes(const struct diff *diff) { return (int64_t)(diff->total[1].bytes - diff->total[0].bytes); }

int64_t diff_grown_blocks(const struct diff *diff) { return (int64_t)(diff->total[1].blocks - diff->total[0].blocks); }

bool diff_has_cuda(const struct diff *diff) { return diff->total[0].cuda || diff->total[1].cuda; }

int64_t diff_grown_cuda_bytes(const struct diff *diff) {
    return (int64_t)(diff->total[1].cuda_bytes - diff->total[0].cuda_bytes);
}

int64_t diff_grown_cuda_blocks(const struct diff *diff) {
    return (int64_t)(diff->total[1].cuda_blocks - diff->total[0].cuda_blocks);
}

uint64_t diff_suppressed(const struct diff *diff) {
    return diff->gate.count ? (uint64_t)diff->gate.list[0].suppressed_bytes : 0; /* the host's total is first */
}
