/* history.c — see history.h. */
#include "tools/views/history.h"
#include "tools/views/roster.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *kind, *words;
} kinds[] = {
    [SNAP_MARK_RUN_BEGAN] = {"run_began", ""},
    [SNAP_MARK_RUN_ENDED] = {"run_ended", "ended"},
    [SNAP_MARK_CAME] = {"came", "came"},
    [SNAP_MARK_RETIRED] = {"retired", "retired"},
    [SNAP_MARK_TRIGGER] = {"trigger", "trigger"},
    [SNAP_MARK_KEPT] = {"kept", "kept"},
    [SNAP_MARK_STOWED] = {"stowed", "stowed"},
    [SNAP_MARK_FREED] = {"freed", "freed"},
    [SNAP_MARK_BLOCKED] = {"blocked", "blocked"},
    [SNAP_MARK_RESTORED] = {"restored", "restored"},
    [SNAP_MARK_OUT_OF_MEMORY] = {"out_of_memory", "out of memory"},
    [HISTORY_PEAK] = {"peak", "peak"},
};

const char *history_kind(const struct snap_mark *mark) { return kinds[mark->kind].kind; }

const char *history_detail(const struct snap_mark *mark) {
    static const char *const reasons[] = {NULL, "run_ended", "request", "pressure", "idle", "rescue"};
    if (mark->kind == SNAP_MARK_RUN_ENDED && mark->detail < ROSTER_OUTCOMES) return roster_outcome_word(mark->detail);
    if (mark->kind == SNAP_MARK_TRIGGER && mark->detail < sizeof reasons / sizeof *reasons)
        return reasons[mark->detail];
    return NULL;
}

struct text_line history_words(const struct history *history, const struct snap_mark *mark) {
    struct text_line name, words;
    const char *owner = image_owner_words(history->image, mark->owner, name.s, sizeof name.s);
    const char *of = !mark->owner ? "" : owner ? owner : "an unknown owner", *what = kinds[mark->kind].words;
    bool run = mark->kind == SNAP_MARK_RUN_BEGAN || mark->kind == SNAP_MARK_RUN_ENDED;
    snprintf(words.s, sizeof words.s, "%s%.900s%s%s", run ? "run " : "", of, *of && *what ? " " : "", what);
    return words;
}

static int by_mark_time(const void *left, const void *right) {
    const struct snap_mark *a = left, *b = right;
    return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

/* Adds a last point, with the exact bytes of the counters. Its time is the present or the end of the process. The end
 * of a killed process is not known; then the new point has the time of the point before it. */
static void add_present(struct history *self) {
    const struct image *image = self->image;
    uint64_t last = self->point_count ? self->points[self->point_count - 1].time_ns : 0;
    uint64_t now = image_knows_now(image) ? image_now(image) : last;
    if (now < last || !self->point_count) return;
    self->points[self->point_count++] =
        (struct snap_point){.time_ns = now, .host = image->host.live_bytes, .mapped = image->mapped.live_bytes};
}

static void add_peak(struct history *self) {
    const struct snap_header *header = &self->image->header;
    if (!header->total_peak_ns || header->total_peak_ns < self->start_ns) return;
    self->marks[self->mark_count++] = (struct snap_mark){
        .time_ns = header->total_peak_ns, .kind = HISTORY_PEAK, .bytes = header->total_peak, .live = SNAP_MARK_UNKNOWN};
    qsort(self->marks, self->mark_count, sizeof *self->marks, by_mark_time);
}

static int by_owner(const void *left, const void *right) {
    const struct snap_owner_mark *a = left, *b = right;
    if (a->owner != b->owner) return a->owner < b->owner ? -1 : 1;
    return a->time_ns < b->time_ns ? -1 : a->time_ns > b->time_ns;
}

static void add_owners(struct history *self) {
    const struct image *image = self->image;
    self->owner_mark_count = image->owner_mark_count;
    if (!image->owner_mark_count) return;
    memcpy(self->owner_marks, image->owner_marks, image->owner_mark_count * sizeof *self->owner_marks);
    qsort(self->owner_marks, self->owner_mark_count, sizeof *self->owner_marks, by_owner);
}

static void raise_to(uint64_t *most, uint64_t value) {
    if (*most < value) *most = value;
}

static uint64_t last_time(const struct history *self) {
    const struct image *image = self->image;
    uint64_t last = self->start_ns;
    if (image_knows_now(image)) raise_to(&last, image_now(image));
    if (self->point_count) raise_to(&last, self->points[self->point_count - 1].time_ns);
    if (image->cuda_point_count) raise_to(&last, image->cuda_points[image->cuda_point_count - 1].time_ns);
    if (self->mark_count) raise_to(&last, self->marks[self->mark_count - 1].time_ns);
    return last;
}

int history_make(struct history *history, const struct image *image) {
    *history = (struct history){.image = image, .start_ns = image->header.start_ns};
    history->points = calloc(image->point_count + 1, sizeof *history->points);
    history->marks = calloc(image->mark_count + 1, sizeof *history->marks);
    history->owner_marks = calloc(image->owner_mark_count + 1, sizeof *history->owner_marks);
    if (!history->points || !history->marks || !history->owner_marks) return -1;
    if (image->point_count) memcpy(history->points, image->points, image->point_count * sizeof *image->points);
    if (image->mark_count) memcpy(history->marks, image->marks, image->mark_count * sizeof *image->marks);
    history->point_count = image->point_count;
    history->mark_count = image->mark_count;
    add_owners(history);
    add_present(history);
    add_peak(history);
    history->end_ns = last_time(history);
    return 0;
}

/* --- curves in columns --- */

size_t history_column(const struct history *history, uint64_t ns, size_t count) {
    double part = (double)history_since(history, ns) / (double)(history->end_ns - history->start_ns);
    size_t column = (size_t)(part * (double)count);
    return column < count ? column : count - 1;
}

/* A curve that is being put into columns. `at`: the column of the last point. `before`: the bytes of the last point,
 * which hold until the next point. */
struct curve {
    const struct history *history;
    uint64_t *columns;
    size_t count, at;
    uint64_t before;
};

static struct curve curve_begin(const struct history *history, uint64_t *columns, size_t count) {
    memset(columns, 0, count * sizeof *columns);
    return (struct curve){.history = history, .columns = columns, .count = count};
}

static void curve_add(struct curve *self, uint64_t ns, uint64_t bytes) {
    size_t to = history_column(self->history, ns, self->count);
    for (; self->at < to; self->at++) {
        raise_to(&self->columns[self->at], self->before);
        raise_to(&self->columns[self->at + 1], self->before);
    }
    self->before = bytes;
    raise_to(&self->columns[self->at], bytes);
}

static void curve_end(struct curve *self) {
    for (; self->at < self->count; self->at++) raise_to(&self->columns[self->at], self->before);
}

void history_columns(const struct history *history, uint64_t *columns, size_t count) {
    struct curve curve = curve_begin(history, columns, count);
    for (size_t i = 0; i < history->point_count; i++)
        curve_add(&curve, history->points[i].time_ns, history_bytes(&history->points[i]));
    curve_end(&curve);
}

void history_device_columns(const struct history *history, uint32_t device, uint64_t *columns, size_t count) {
    const struct image *image = history->image;
    struct curve curve = curve_begin(history, columns, count);
    for (size_t i = 0; i < image->cuda_point_count; i++)
        curve_add(&curve, image->cuda_points[i].time_ns, image->cuda_points[i].live[device]);
    curve_end(&curve);
}

const char *history_bar(uint64_t eighths) {
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const plain[] = {" ", "_", ".", ".", "-", "-", "=", "=", "#"};
    return (text_is_utf8() ? blocks : plain)[eighths < 8 ? eighths : 8];
}

struct text_line history_line(const struct history *history, size_t columns) {
    enum { MOST = 200 };
    uint64_t heights[MOST], most = 1;
    struct text_line line = {""};
    if (columns > MOST) columns = MOST;
    history_columns(history, heights, columns);
    for (size_t i = 0; i < columns; i++) raise_to(&most, heights[i]);
    for (size_t i = 0; i < columns; i++) {
        double eighths = (double)heights[i] / (double)most * 8;
        strcat(line.s, history_bar(heights[i] ? 1 + (uint64_t)(eighths * 7 / 8) : 0));
    }
    return line;
}

void history_clear(struct history *history) {
    free(history->points);
    free(history->marks);
    free(history->owner_marks);
    memset(history, 0, sizeof *history);
}
