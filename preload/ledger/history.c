/* history.c — see history.h. Marks are a ring: when it is full, a new mark replaces the oldest one. */
#include "preload/ledger/history.h"

#include <fcntl.h>
#include <string.h>

#include "preload/base/forked.h"
#include "preload/base/seal.h"
#include "preload/ledger/ledger.h"
#include "preload/ledger/points.h"
#include "preload/ledger/series.h"

/* Each section is twice as long as the section before it. All sections together hold exactly SNAP_POINTS records. */
enum { FIRST_BITS = 6 };
_Static_assert(((SNAP_POINTS >> FIRST_BITS) & ((SNAP_POINTS >> FIRST_BITS) + 1)) == 0, "whole sections");
#define HISTORY_SERIES(of, records)                                                                                    \
    { .type = (of), .record_size = sizeof(records), .first_bits = FIRST_BITS, .limit = SNAP_POINTS }

static struct series points = HISTORY_SERIES(SNAP_POINT, struct snap_point),
                     device_points = HISTORY_SERIES(SNAP_CUDA_POINT, struct snap_cuda_point),
                     marks = HISTORY_SERIES(SNAP_MARK, struct snap_mark),
                     owner_marks = HISTORY_SERIES(SNAP_OWNER_MARK, struct snap_owner_mark);
static uint64_t marked, noted; /* how many marks, and records of owners, there were */

struct history_gate history_memory, history_on_devices;
uint64_t history_total, history_devices[SNAP_POINT_DEVICES];
const int64_t *history_live[SNAP_POINT_DEVICES];

static uint64_t bytes_live(const int64_t *total) { return os_not_negative(__atomic_load_n(total, __ATOMIC_RELAXED)); }

static uint64_t bytes_on(uint32_t device) {
    const int64_t *live = __atomic_load_n(&history_live[device], __ATOMIC_RELAXED);
    return live ? bytes_live(live) : 0;
}

/* --- the two curves --- */

/* Returns a curve's record, and makes it if it does not exist yet. NULL: there is no memory for a new record, so the
 * curve goes on with the records that it has. */
static uint64_t *history_record(struct series *series, uint32_t index) {
    if (index >= os_load(&series->next) && series_take(series) != index) return NULL;
    return series_at(series, index);
}

static uint64_t *point_at(uint32_t index) { return history_record(&points, index); }
static uint64_t *device_point_at(uint32_t index) { return history_record(&device_points, index); }

/* How many words a point has behind its time. MEMORY_VALUES: host, mapped, and one word with both `run` and `node`.
 * DEVICE_VALUES: one word for each device. */
enum { MEMORY_VALUES = 3, DEVICE_VALUES = SNAP_POINT_DEVICES };
static struct curve {
    struct points points;
    struct history_gate *gate;
    uint64_t busy_since; /* when the thread that is at work on the curve began; 0: no thread is at work */
    uint64_t last_ns, last[DEVICE_VALUES]; /* the time and the values of the newest point */
} memory = {.points = {.at = point_at, .values = MEMORY_VALUES, .summed = 2}, .gate = &history_memory},
  on_devices = {.points = {.at = device_point_at, .values = DEVICE_VALUES, .summed = DEVICE_VALUES},
                .gate = &history_on_devices};

/* A thread works on a curve for microseconds. If it takes longer than ABANDONED_NS, a signal handler has jumped out of
 * the work, or the thread is stopped. Then another thread takes over. If the stopped thread continues, two threads
 * write to the curve at once. Points may be lost or wrong then, but both threads write only to records that exist
 * (points.c). */
static const int64_t ABANDONED_NS = 1000000000;

/* Begins to work on the curve. Returns the time. Returns 0 if another thread is at work, or if the ledger is not ours
 * (ledger_is_ours). Nothing orders the load of `busy_since` and the look at the clock, so now - since may be
 * negative. */
static uint64_t curve_enter(struct curve *self) {
    uint64_t since = os_load(&self->busy_since), now = os_now();
    if (!ledger_is_ours() || (since && (int64_t)(now - since) < ABANDONED_NS)) return 0;
    bool entered =
        __atomic_compare_exchange_n(&self->busy_since, &since, now, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
    return entered ? now : 0;
}

static void curve_leave(struct curve *self, uint64_t entered) {
    __atomic_compare_exchange_n(&self->busy_since, &entered, 0, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static bool has_moved(const struct curve *self, const uint64_t *values) {
    for (uint32_t i = 0; i < self->points.summed; i++)
        if (values[i] - self->last[i] + SNAP_POINT_STEP > 2 * (uint64_t)SNAP_POINT_STEP) return true;
    return false;
}

/* Adds a point with the values `now`. `before`: the values just before this change. If they are far from the newest
 * point, there were changes that came too soon after that point to get points of their own. Then `before` becomes a
 * point, too. */
static void curve_add(struct curve *self, uint64_t now_ns, const uint64_t *before, const uint64_t *now) {
    /* Another thread may have added a point after this thread read the clock. */
    if (now_ns < self->last_ns + 2) now_ns = self->last_ns + 2;
    if (self->last_ns && has_moved(self, before)) points_add(&self->points, self->last_ns + 1, before);
    points_add(&self->points, now_ns, now);
    memcpy(self->last, now, self->points.values * sizeof *now);
    self->last_ns = now_ns;
    os_store(&self->gate->high, self->points.high);
    os_store(&self->gate->ticks, os_ticks());
}

void history_add(struct history_totals before, struct history_totals now, uint32_t run, uint32_t node) {
    struct snap_point first = {.host = before.host, .mapped = before.mapped, .run = run, .node = node},
                      second = {.host = now.host, .mapped = now.mapped, .run = run, .node = node};
    uint64_t time_ns = curve_enter(&memory), values[2][MEMORY_VALUES];
    if (!time_ns) return;
    memcpy(values[0], &first.host, sizeof values[0]);
    memcpy(values[1], &second.host, sizeof values[1]);
    curve_add(&memory, time_ns, values[0], values[1]);
    os_store(&history_total, now.host + now.mapped);
    curve_leave(&memory, time_ns);
}

void history_add_device(uint32_t device, uint64_t before) {
    uint64_t time_ns = curve_enter(&on_devices), values[2][DEVICE_VALUES];
    if (!time_ns) return;
    for (uint32_t i = 0; i < DEVICE_VALUES; i++) values[0][i] = values[1][i] = bytes_on(i);
    values[0][device] = before;
    curve_add(&on_devices, time_ns, values[0], values[1]);
    for (uint32_t i = 0; i < DEVICE_VALUES; i++) os_store(&history_devices[i], values[1][i]);
    curve_leave(&on_devices, time_ns);
}

/* --- marks on the curves --- */

/* The resident set size; 0: not known. */
static uint64_t history_resident(void) {
    char text[128] = {0};
    const char *at;
    int fd = seal_is_set() ? -1 : os_open("/proc/self/statm", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return 0;
    os_read(fd, text, sizeof text - 1);
    os_close(fd);
    at = strchr(text, ' ');
    if (!at++) return 0;
    return os_take_decimal(&at) * OS_PAGE;
}

/* Whether the resident size is read for a mark of this kind. The kinds for which it is read are so rare that three
 * system calls do not matter. */
static bool measures_resident(uint32_t kind) {
    return kind == SNAP_MARK_RUN_BEGAN || kind == SNAP_MARK_RUN_ENDED || kind == SNAP_MARK_TRIGGER;
}

/* The next record of a ring; NULL: there is no memory. */
static void *ring_next(struct series *ring, uint64_t *count) {
    uint32_t index = (uint32_t)(__atomic_fetch_add(count, 1, __ATOMIC_RELAXED) % SNAP_POINTS);
    while (os_load(&ring->next) <= index && series_take(ring) != SERIES_NONE)
        ;
    return index < os_load(&ring->next) ? series_at(ring, index) : NULL;
}

uint64_t history_mark(const struct snap_mark *mark) {
    struct snap_mark *to = ledger_is_ours() ? ring_next(&marks, &marked) : NULL, filled = *mark;
    if (!to) return 0;
    filled.kind = 0;
    filled.time_ns = os_now();
    filled.host = bytes_live(&ledger_head->host_live);
    filled.mapped = bytes_live(&ledger_head->mapped_live);
    for (uint32_t i = 0; i < SNAP_POINT_DEVICES; i++) filled.on_devices += bytes_on(i);
    filled.rss = measures_resident(mark->kind) ? history_resident() : 0;
    __atomic_store_n(&to->kind, 0, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    *to = filled;
    __atomic_store_n(&to->kind, mark->kind, __ATOMIC_RELEASE);
    return filled.time_ns;
}

bool history_note_owner(const struct snap_owner_mark *note) {
    struct snap_owner_mark *to = ledger_is_ours() ? ring_next(&owner_marks, &noted) : NULL, filled = *note;
    if (!to) return false;
    filled.time_ns = 0;
    os_store(&to->time_ns, 0);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    *to = filled;
    __atomic_store_n(&to->time_ns, note->time_ns, __ATOMIC_RELEASE);
    return true;
}

static void curve_forget(struct curve *self) {
    struct points *mine = &self->points;
    mine->count = mine->newest = 0;
    mine->interval_ns = self->busy_since = self->last_ns = 0;
    memset(self->last, 0, sizeof self->last);
    *self->gate = (struct history_gate){0};
}

static void history_abandon(void) {
    curve_forget(&memory);
    curve_forget(&on_devices);
    series_reset(&points);
    series_reset(&device_points);
    series_reset(&marks);
    series_reset(&owner_marks);
    marked = noted = history_total = 0;
    memset(history_devices, 0, sizeof history_devices);
    memset(history_live, 0, sizeof history_live);
}
FORKED(history_abandon);
