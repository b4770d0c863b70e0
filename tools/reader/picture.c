/* picture.c — see picture.h. The picture is in the section PEAK_0 or PEAK_1; the header says in which.
 * In: LEB128 numbers, which a running process may be replacing. Out: peak_bytes and peak_blocks of the totals. */
#include "tools/reader/picture.h"

#include <stdlib.h>

enum { PEAK_TRIES = 4 };

static uint32_t picture_buffer(const struct reader *reader) {
    uint32_t buffer = 2;
    if (source_read(reader->source, offsetof(struct snap_header, picture_buffer), &buffer, sizeof buffer) < 0) return 2;
    return buffer;
}

/* Adds the picture to the totals. The picture and the totals are sorted by site. At this time, the member `stack` of a
 * total holds the id of the total's site (counters.c). The first total of a site gets the site's whole peak.
 * Returns 0, or -1: the numbers make no sense. */
static int lay_picture(struct reader *reader, const uint8_t *at, const uint8_t *end) {
    struct image *image = reader->image;
    uint64_t site = 0, step, bytes, blocks;
    for (size_t i = 0; at < end;) {
        if (!snap_get_number(&at, end, &step) || !snap_get_number(&at, end, &bytes) ||
            !snap_get_number(&at, end, &blocks))
            return -1;
        site += step;
        while (i < image->total_count && image->totals[i].stack < site) i++;
        if (i == image->total_count) break;
        if (image->totals[i].stack != site) continue;
        image->totals[i].peak_bytes = bytes;
        image->totals[i].peak_blocks = blocks;
    }
    return 0;
}

static void picture_forget(struct image *image) {
    for (size_t i = 0; i < image->total_count; i++) image->totals[i].peak_bytes = image->totals[i].peak_blocks = 0;
}

static int read_picture(struct reader *reader, uint32_t buffer) {
    uint64_t length = 0;
    uint8_t *bytes = NULL;
    size_t count;
    if (source_read(reader->source, offsetof(struct snap_header, picture_length), &length, sizeof length) < 0 ||
        reader_table(reader, buffer ? SNAP_PEAK_1 : SNAP_PEAK_0, 1, (void **)&bytes, &count) < 0)
        return -1;
    int result = length <= count ? lay_picture(reader, bytes, bytes + length) : -1;
    free(bytes);
    return result;
}

/* Loads the picture of the peak. If the picture of a running process makes no sense, the process was replacing the
 * picture during the reading, so the picture is read again. */
int picture_load(struct reader *reader) {
    struct image *image = reader->image;
    for (int try = 0; try < PEAK_TRIES && !image->has_picture; try++) {
        uint32_t buffer = picture_buffer(reader);
        if (buffer > 1) break;
        int result = read_picture(reader, buffer);
        if (result < 0 && (image->error[0] || !reader->live))
            return image->error[0] ? -1 : reader_damaged(reader, 0, "the picture of the peak makes no sense");
        image->has_picture = result == 0 && picture_buffer(reader) == buffer;
        if (!image->has_picture) picture_forget(image);
    }
    return 0;
}
