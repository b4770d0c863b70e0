/* points.c — see points.h. */
#include "preload/ledger/points.h"

#include "preload/shared/os.h"

enum { FIRST_INTERVAL_NS = 1 << 20 };
static const uint64_t LONGEST_INTERVAL_NS = (uint64_t)1 << 62;

static void points_put(const struct points *self, uint64_t *to, uint64_t time_ns, const uint64_t *values) {
    os_store(to, 0);
    for (uint32_t i = 0; i < self->values; i++) __atomic_store_n(&to[1 + i], values[i], __ATOMIC_RELEASE);
    __atomic_store_n(to, time_ns, __ATOMIC_RELEASE);
}

static void points_move(const struct points *self, uint32_t from, uint32_t to) {
    const uint64_t *record = self->at(from);
    if (from != to) points_put(self, self->at(to), record[0], record + 1);
}

static uint64_t points_interval(const struct points *self, uint32_t index) {
    return (self->at(index)[0] - self->begin_ns) / self->interval_ns;
}

static uint64_t points_height(const struct points *self, uint32_t index) {
    const uint64_t *record = self->at(index);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < self->summed; i++) sum += record[1 + i];
    return sum;
}

/* Returns the first point behind the interval of `first`, or `count` if there is none. *highest: the highest point of
 * the interval. */
static uint32_t points_next(const struct points *self, uint32_t first, uint32_t count, uint32_t *highest) {
    uint64_t interval = points_interval(self, first);
    uint32_t next = *highest = first;
    while (++next < count && points_interval(self, next) == interval)
        if (points_height(self, next) > points_height(self, *highest)) *highest = next;
    return next;
}

/* Thins the points from `first` on: each interval keeps its highest and its latest point. The first point of the curve
 * stays, too. `first` must be the first point of its interval. Points move only towards the front, in order. */
static void points_thin(struct points *self, uint32_t first) {
    const uint32_t count = self->count;
    uint32_t kept = first, highest;
    for (uint32_t at = first, next; at < count; at = next) {
        next = points_next(self, at, count, &highest);
        self->newest = kept;
        self->high = points_height(self, highest);
        if (at == 0 && highest > 0) kept++;
        if (highest < next - 1) points_move(self, highest, kept++);
        points_move(self, next - 1, kept++);
    }
    for (uint32_t i = kept; i < count; i++) os_store(self->at(i), 0);
    self->count = kept;
}

/* Thins the points until a quarter of them is gone. So there is room for many new points before the next call. */
static void points_thin_out(struct points *self) {
    uint32_t enough = self->count - 1 - self->count / 4;
    while (self->count > enough && self->interval_ns < LONGEST_INTERVAL_NS) {
        self->interval_ns *= 2;
        points_thin(self, 0);
    }
}

void points_add(struct points *self, uint64_t time_ns, const uint64_t *values) {
    if (!self->interval_ns) {
        self->interval_ns = FIRST_INTERVAL_NS;
        self->begin_ns = time_ns;
    }
    uint32_t at = self->count;
    uint64_t *record = self->at(at);
    if (!record && at) {
        points_thin_out(self);
        record = self->at(at = self->count);
    }
    if (!record) return;
    points_put(self, record, time_ns, values);
    /* Now `record` is the last point that counts. It exists, even if two threads are in this function at once. */
    self->count = at + 1;
    points_thin(self, self->newest);
}
