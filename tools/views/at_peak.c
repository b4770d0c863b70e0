/* at_peak.c — see at_peak.h. */
#include "tools/views/at_peak.h"
#include "tools/base/text.h"

#include <stdio.h>

/* Figures are not called "at peak" if they differ from the peak by more than NEAR_MIN bytes and by more than
 * 1 / NEAR_LIVE of the peak. */
enum { NEAR_MIN = 1 << 20, NEAR_LIVE = 4 };

static uint64_t distance_between(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

static uint64_t at_peak_most(uint64_t a, uint64_t b) { return a > b ? a : b; }

static uint64_t at_peak_live_bytes(const struct image *image) {
    return image->host.live_bytes + image->mapped.live_bytes;
}

static void show_live(struct image *image) {
    for (size_t i = 0; i < image->total_count; i++) {
        struct total *total = &image->totals[i];
        total->peak_bytes = total->flags & TOTAL_INHERITED ? 0 : total_live_bytes(total);
        total->peak_blocks = total->flags & TOTAL_INHERITED ? 0 : total_live_blocks(total);
    }
    image->header.picture_bytes = at_peak_live_bytes(image);
    image->header.picture_peak = image_peak(image);
    image->header.picture_ns = image_now(image);
    image->has_picture = image->picture_is_live = true;
}

void at_peak_choose(struct image *image) {
    uint64_t peak = image_peak(image), picture = image->has_picture ? image->header.picture_bytes : 0;
    if (distance_between(peak, at_peak_live_bytes(image)) < distance_between(peak, picture)) show_live(image);
}

int64_t at_peak_distance(const struct image *image) {
    return (int64_t)(image_peak(image) - image->header.picture_bytes);
}

static bool is_of_highest(const struct image *image) {
    uint64_t peak = image_peak(image);
    return distance_between(peak, image->header.picture_peak) <= at_peak_most(peak / 100, NEAR_MIN);
}

bool at_peak_of_highest(const struct image *image) {
    uint64_t peak = image_peak(image), near = at_peak_most(peak / 100, NEAR_MIN);
    if (image->picture_is_live)
        return distance_between(peak, image->header.picture_bytes) <= at_peak_most(near, peak / NEAR_LIVE);
    return !image->has_picture || (is_of_highest(image) && distance_between(peak, image->header.picture_bytes) <=
                                                               at_peak_most(near, peak / NEAR_LIVE));
}

bool at_peak_since_freed(const struct image *image) {
    uint64_t peak = image_peak(image);
    return image->header.state == SNAP_EXITED && image->has_picture && !image->picture_is_live &&
           peak - at_peak_live_bytes(image) > at_peak_most(NEAR_MIN, peak / 2);
}

static const char *live_when(const struct image *image) {
    if (image->header.kind == SNAP_SNAPSHOT) return "was live when this snapshot was taken";
    return image->running ? "is live now" : "was live at the end";
}

void at_peak_words(const struct image *image, char *text, size_t size) {
    const struct snap_header *header = &image->header;
    int64_t off = at_peak_distance(image);
    struct text distance = text_size((uint64_t)(off < 0 ? -off : off));
    uint64_t after = header->picture_ns > header->start_ns ? header->picture_ns - header->start_ns : 0;
    if (image->picture_is_live && !off)
        snprintf(text, size, "what %s: that is the peak.", live_when(image));
    else if (image->picture_is_live)
        snprintf(text, size, "what %s: no picture of the ledger is nearer to the peak. The difference is %s.",
                 live_when(image), distance.s);
    else if (is_of_highest(image) && off <= 0)
        snprintf(text, size, "the ledger at the peak, %s after the start.", text_duration(after).s);
    else if (is_of_highest(image))
        snprintf(text, size,
                 "the ledger at %s, on its way down from the peak, which was %s after the start and %s higher.",
                 text_size(header->picture_bytes).s, text_duration(after).s, distance.s);
    else
        snprintf(text, size,
                 "the ledger as it fell from a peak %s after the start. The highest peak came later and was %s higher: "
                 "there is no picture of it.",
                 text_duration(after).s, distance.s);
}
