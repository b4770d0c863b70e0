/* history.h — memory over time, for every form that shows it.
 * In: an image. Out: the curve of heap and mappings up to the image's present, the curves of CUDA devices up to their
 * last points, the marks in the order of time, with the peak among them, and their words. */
#ifndef MEMSTOW_HISTORY_VIEW_H
#define MEMSTOW_HISTORY_VIEW_H

#include "tools/image/image.h"
#include "tools/base/text.h"

/* In place of a kind of snap_mark: the peak of the process, which is in the header. */
enum { HISTORY_PEAK = SNAP_MARK_KINDS };

struct history {
    const struct image *image;
    struct snap_point *points;
    struct snap_mark *marks;
    size_t point_count, mark_count;
    uint64_t start_ns, end_ns; /* of the process, as far as it is known */
};

/* Returns 0, or -1: no memory. The image must outlive the history. */
int history_make(struct history *history, const struct image *image);
void history_clear(struct history *history);

/* A curve must differ from the truth by less than this, at any time between two points. */
enum { HISTORY_WITHIN = 1 << 20 };

static inline uint64_t history_bytes(const struct snap_point *point) { return point->host + point->mapped; }

/* Nanoseconds from the start of the process. */
static inline uint64_t history_since(const struct history *history, uint64_t ns) {
    return ns > history->start_ns ? ns - history->start_ns : 0;
}

/* Fewer points are no curve. */
enum { HISTORY_POINTS_LEAST = 4 };
static inline bool history_has_curve(const struct history *history) {
    return history->point_count >= HISTORY_POINTS_LEAST && history->end_ns > history->start_ns;
}
/* The most live bytes in each of `count` equal parts of the time. */
void history_columns(const struct history *history, uint64_t *columns, size_t count);
/* The same of a CUDA device below SNAP_POINT_DEVICES; all are 0 where it has no curve. */
void history_device_columns(const struct history *history, uint32_t device, uint64_t *columns, size_t count);
/* The column in which a time lies. */
size_t history_column(const struct history *history, uint64_t ns, size_t count);
/* A character that is `eighths` of eight high: a block, or ASCII where the locale is not UTF-8. */
const char *history_bar(uint64_t eighths);
/* The curve in one line. */
struct text_line history_line(const struct history *history, size_t columns);

/* "run_began"; and words for people: "run 3", "unet stowed". */
const char *history_kind(const struct snap_mark *mark);
struct text_line history_words(const struct history *history, const struct snap_mark *mark);
/* The outcome of a run, or the reason of a trigger; NULL: the mark has none. */
const char *history_detail(const struct snap_mark *mark);

#endif
