/* at_peak.c — which figures show what was live at the peak; see at_peak.h. */
#include "at_peak.h"

enum { NEAR_MIN = 1 << 20 };

static uint64_t distance(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static uint64_t live_bytes(const struct image *image) { return image->host.live_bytes + image->mapped.live_bytes; }

static void show_live(struct image *image) {
    for (size_t i = 0; i < image->total_count; i++) {
        struct total *total = &image->totals[i];
        total->peak_bytes = total->flags & TOTAL_INHERITED ? 0 : total_live_bytes(total);
        total->peak_blocks = total->flags & TOTAL_INHERITED ? 0 : total_live_blocks(total);
    }
    image->header.picture_bytes = live_bytes(image);
    image->header.picture_peak = image_peak(image);
    image->header.picture_ns = image_now(image);
    image->picture_is_live = true;
}

void at_peak_choose(struct image *image) {
    uint64_t peak = image_peak(image);
    if (image->has_picture && distance(peak, live_bytes(image)) < distance(peak, image->header.picture_bytes))
        show_live(image);
}

int64_t at_peak_distance(const struct image *image) {
    return (int64_t)(image_peak(image) - image->header.picture_bytes);
}

bool at_peak_of_highest(const struct image *image) {
    uint64_t peak = image_peak(image), near = peak / 100 > NEAR_MIN ? peak / 100 : NEAR_MIN;
    return image->picture_is_live || distance(peak, image->header.picture_peak) <= near;
}
