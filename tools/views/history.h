/* history.h — memory over time, for text, JSON and pages.
 * In: an image. Out: the curve of heap and mappings up to now or the process's end, the curve of each CUDA device, the
 * marks in the order of time (the peak is one of them), and texts for marks. */
#ifndef MEMSTOW_HISTORY_VIEW_H
#define MEMSTOW_HISTORY_VIEW_H

#include "tools/image/image.h"
#include "tools/base/text.h"

/* A kind of mark that no file has: the peak of the process. It is made from the header. */
enum { HISTORY_PEAK = SNAP_MARK_KINDS };

struct history {
    const struct image *image;
    struct snap_point *points;
    struct snap_mark *marks;
    struct snap_owner_mark *owner_marks; /* sorted by owner, then by time */
    size_t point_count, mark_count, owner_mark_count;
    uint64_t start_ns, end_ns; /* of the process; end: the last time that is known */
};

/* Makes the curves and marks. Returns 0, or -1: no memory. The image must outlive the history. */
int history_make(struct history *history, const struct image *image);
void history_clear(struct history *history);

/* At any time between two points, the curve differs from the live bytes by less than this many bytes. */
enum { HISTORY_WITHIN = 1 << 20 };

static inline uint64_t history_bytes(const struct snap_point *point) { return point->host + point->mapped; }

/* The nanoseconds from the start of the process to the time `ns`; 0 if `ns` is earlier. */
static inline uint64_t history_since(const struct history *history, uint64_t ns) {
    return ns > history->start_ns ? ns - history->start_ns : 0;
}

/* With fewer points, no curve is shown. */
enum { HISTORY_POINTS_LEAST = 4 };
static inline bool history_has_curve(const struct history *history) {
    return history->point_count >= HISTORY_POINTS_LEAST && history->end_ns > history->start_ns;
}
/* Divides the time of the process into `count` equal parts, and finds the most live bytes in each part. */
void history_columns(const struct history *history, uint64_t *columns, size_t count);
/* As history_columns, for the memory of a CUDA device. `device` is below SNAP_POINT_DEVICES. All columns are 0 if the
 * device has no curve. */
void history_device_columns(const struct history *history, uint32_t device, uint64_t *columns, size_t count);
/* The column in which a time lies. */
size_t history_column(const struct history *history, uint64_t ns, size_t count);
/* A character for a bar of `eighths` eighths of a row: a block, or ASCII where the locale is not UTF-8. */
const char *history_bar(uint64_t eighths);
/* The curve in one line. */
struct text_line history_line(const struct history *history, size_t columns);

/* The kind of a mark, as JSON has it: "run_began". */
const char *history_kind(const struct snap_mark *mark);
/* The mark in words for people: "run 3", "unet stowed". */
struct text_line history_words(const struct history *history, const struct snap_mark *mark);
/* The outcome of a run that ended, or the reason of a trigger; NULL for other marks. */
const char *history_detail(const struct snap_mark *mark);

#endif
