/* history_image.c — see history_image.h. While the command reads records, the running process may write them or merge
 * points. So the records of a live ledger are read twice, and records that differ the second time are left out. */
#include "tools/reader/history_image.h"

#include <stdlib.h>
#include <string.h>

/* A type of records. Every record begins with its time. */
struct records {
    uint32_t type;
    size_t size;
    bool (*is_sound)(const void *record);
    bool share_times; /* several records may have the same time */
};

static const uint64_t BYTES_MOST = UINT64_C(1) << 60; /* limit of one figure, so that a sum of 16 does not overflow */

static bool are_bytes(const uint64_t *figures, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (figures[i] > BYTES_MOST) return false;
    return true;
}

static bool is_point(const void *record) {
    const struct snap_point *point = record;
    return are_bytes(&point->host, 2);
}

static bool is_cuda_point(const void *record) {
    const struct snap_cuda_point *point = record;
    return are_bytes(point->live, SNAP_POINT_DEVICES);
}

static bool is_mark(const void *record) {
    const struct snap_mark *mark = record;
    const uint64_t figures[] = {mark->bytes, mark->host, mark->mapped, mark->on_devices, mark->rss};
    bool live = mark->live == SNAP_MARK_UNKNOWN || are_bytes(&mark->live, 1);
    return mark->kind && mark->kind < SNAP_MARK_KINDS && live && are_bytes(figures, sizeof figures / sizeof *figures);
}

static bool is_owner_mark(const void *record) {
    const struct snap_owner_mark *mark = record;
    return mark->owner && are_bytes(&mark->live, 2);
}

static uint64_t time_of(const void *record) {
    uint64_t time;
    memcpy(&time, record, sizeof time);
    return time;
}

static int by_time(const void *left, const void *right) {
    uint64_t a = time_of(left), b = time_of(right);
    return a < b ? -1 : a > b;
}

/* Sorts the records by time, and drops those that are empty, unsound, or older than the process. If several points have
 * the same time, only one of them stays. Several marks may have the same time (share_times). Returns the number of
 * records that are left. */
static size_t history_image_settle(const struct records *self, uint8_t *table, size_t count, uint64_t start_ns) {
    size_t sound = 0, kept = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *record = table + i * self->size;
        if (time_of(record) && time_of(record) >= start_ns && self->is_sound(record))
            memmove(table + sound++ * self->size, record, self->size);
    }
    qsort(table, sound, self->size, by_time);
    for (size_t i = 0; i < sound; i++) {
        const uint8_t *record = table + i * self->size, *last = kept ? table + (kept - 1) * self->size : NULL;
        if (last && !self->share_times && time_of(record) == time_of(last)) continue;
        memmove(table + kept++ * self->size, record, self->size);
    }
    return kept;
}

/* Reads the records a second time, and sets to 0 those that have changed. */
static int read_again(struct reader *reader, const struct records *self, uint8_t *table, size_t count) {
    void *again = NULL;
    size_t more;
    if (reader_table(reader, self->type, self->size, &again, &more) < 0) return -1;
    for (size_t i = 0; i < count; i++) {
        uint8_t *record = table + i * self->size, *second = (uint8_t *)again + i * self->size;
        if (i >= more || memcmp(record, second, self->size) != 0) memset(record, 0, self->size);
    }
    free(again);
    return 0;
}

static int load_records(struct reader *reader, const struct records *self, void **table, size_t *count) {
    if (reader_table(reader, self->type, self->size, table, count) < 0) return -1;
    if (reader->live && read_again(reader, self, *table, *count) < 0) return -1;
    *count = history_image_settle(self, *table, *count, reader->image->header.start_ns);
    return 0;
}

int history_image_load(struct reader *reader) {
    static const struct records points = {SNAP_POINT, sizeof(struct snap_point), is_point, false},
                                cuda_points = {SNAP_CUDA_POINT, sizeof(struct snap_cuda_point), is_cuda_point, false},
                                marks = {SNAP_MARK, sizeof(struct snap_mark), is_mark, true},
                                owner_marks = {SNAP_OWNER_MARK, sizeof(struct snap_owner_mark), is_owner_mark, true};
    struct image *image = reader->image;
    if (load_records(reader, &points, (void **)&image->points, &image->point_count) < 0 ||
        load_records(reader, &cuda_points, (void **)&image->cuda_points, &image->cuda_point_count) < 0)
        return -1;
    if (load_records(reader, &marks, (void **)&image->marks, &image->mark_count) < 0) return -1;
    return load_records(reader, &owner_marks, (void **)&image->owner_marks, &image->owner_mark_count);
}
