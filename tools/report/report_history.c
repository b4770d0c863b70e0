/* report_history.c — memory over time in JSON; see report.h. Points are written as columns: one array for each
 * figure. */
#include "tools/report/report.h"
#include "tools/views/history.h"

/* Begins the array of a column, which is written on one line. */
static void column_begin(struct json *json, const char *key) {
    json_array(json, key);
    json->one_line = true;
}

static void column_end(struct json *json) {
    json_end_array(json);
    json->one_line = false;
}

static void json_seconds(struct json *json, const struct history *history, const char *key, uint64_t ns) {
    json_real(json, key, (double)history_since(history, ns) / 1e9);
}

static void json_memory(struct json *json, const struct history *history) {
    const struct snap_point *points = history->points;
    column_begin(json, "seconds");
    for (size_t i = 0; i < history->point_count; i++) json_seconds(json, history, NULL, points[i].time_ns);
    column_end(json);
    column_begin(json, "host_bytes");
    for (size_t i = 0; i < history->point_count; i++) json_number(json, NULL, points[i].host);
    column_end(json);
    column_begin(json, "mapped_bytes");
    for (size_t i = 0; i < history->point_count; i++) json_number(json, NULL, points[i].mapped);
    column_end(json);
    column_begin(json, "runs");
    for (size_t i = 0; i < history->point_count; i++) json_number(json, NULL, points[i].run);
    column_end(json);
    column_begin(json, "nodes");
    for (size_t i = 0; i < history->point_count; i++) json_number(json, NULL, points[i].node);
    column_end(json);
}

static void json_device(struct json *json, const struct history *history, size_t device) {
    const struct image *image = history->image;
    json_object(json, NULL);
    json_number(json, "device", device);
    column_begin(json, "seconds");
    for (size_t i = 0; i < image->cuda_point_count; i++)
        json_seconds(json, history, NULL, image->cuda_points[i].time_ns);
    column_end(json);
    column_begin(json, "bytes");
    for (size_t i = 0; i < image->cuda_point_count; i++) json_number(json, NULL, image->cuda_points[i].live[device]);
    column_end(json);
    json_end_object(json);
}

static void json_devices(struct json *json, const struct history *history) {
    const struct cuda_image *cuda = &history->image->cuda;
    json_array(json, "devices");
    for (size_t i = 0; i < cuda->device_count && i < SNAP_POINT_DEVICES; i++)
        if (cuda->devices[i].used) json_device(json, history, i);
    json_end_array(json);
}

/* What one owner had at marks: `count` records. */
static void json_owner(struct json *json, const struct history *history, const struct snap_owner_mark *of,
                       size_t count) {
    json_object(json, NULL);
    report_json_owner(json, history->image, of->owner);
    column_begin(json, "seconds");
    for (size_t i = 0; i < count; i++) json_seconds(json, history, NULL, of[i].time_ns);
    column_end(json);
    column_begin(json, "live_bytes");
    for (size_t i = 0; i < count; i++) json_number(json, NULL, of[i].live);
    column_end(json);
    column_begin(json, "cuda_bytes");
    for (size_t i = 0; i < count; i++) json_number(json, NULL, of[i].on_devices);
    column_end(json);
    json_end_object(json);
}

static void json_owners(struct json *json, const struct history *history) {
    const struct snap_owner_mark *marks = history->owner_marks;
    json_array(json, "owners");
    for (size_t first = 0, next; first < history->owner_mark_count; first = next) {
        for (next = first + 1; next < history->owner_mark_count && marks[next].owner == marks[first].owner;) next++;
        json_owner(json, history, marks + first, next - first);
    }
    json_end_array(json);
}

static void json_bytes(struct json *json, const char *key, uint64_t bytes, bool known) {
    if (known)
        json_number(json, key, bytes);
    else
        json_null(json, key);
}

static void json_mark(struct json *json, const struct history *history, const struct snap_mark *mark) {
    bool peak = mark->kind == HISTORY_PEAK, refused = mark->kind == SNAP_MARK_OUT_OF_MEMORY;
    json_object(json, NULL);
    json_seconds(json, history, "seconds", mark->time_ns);
    json_string(json, "kind", history_kind(mark));
    report_json_owner(json, history->image, mark->owner);
    json_string(json, "detail", history_detail(mark));
    json_bytes(json, "device", mark->detail, refused);
    json_bytes(json, "bytes", mark->bytes, mark->bytes);
    json_bytes(json, "owner_live_bytes", mark->live, mark->live != SNAP_MARK_UNKNOWN);
    json_bytes(json, "host_bytes", mark->host, !peak);
    json_bytes(json, "mapped_bytes", mark->mapped, !peak);
    json_bytes(json, "cuda_bytes", mark->on_devices, !peak);
    json_bytes(json, "rss_bytes", mark->rss, mark->rss);
    json_end_object(json);
}

int report_json_history(struct json *json, const struct image *image) {
    struct history history;
    int result = history_make(&history, image);
    json_object(json, "history");
    json_number(json, "within_bytes", HISTORY_WITHIN);
    if (result == 0) json_memory(json, &history);
    if (result == 0) json_devices(json, &history);
    if (result == 0) json_owners(json, &history);
    json_array(json, "marks");
    for (size_t i = 0; i < history.mark_count; i++) json_mark(json, &history, &history.marks[i]);
    json_end_array(json);
    json_end_object(json);
    history_clear(&history);
    return result;
}
