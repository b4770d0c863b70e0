/* points.h — the points of a curve over time, thinned so that they always fit.
 * In: values, and the time since which they hold. Out: the first point of the curve, and the highest and the latest
 * point of each interval. When all points are taken, the intervals become twice as long. It allocates nothing and takes
 * no lock: one thread at a time may add. Each step leaves points that a reader can use, so a kill in between loses at
 * most one point. */
#ifndef MEMSTOW_POINTS_H
#define MEMSTOW_POINTS_H

#include <stdint.h>

#pragma GCC visibility push(hidden)

struct points {
    /* Returns the record of a point, which is the point's time and its values. The time is 0 in an empty record. NULL:
     * there is no memory. */
    uint64_t *(*at)(uint32_t index);
    uint32_t values; /* the number of a point's values */
    uint32_t summed; /* the first `summed` values add up to the point's height */
    uint32_t count;
    uint32_t newest;      /* the first point of the newest interval */
    uint64_t high;        /* the height of the newest interval's highest point */
    uint64_t interval_ns; /* 0: there was no point yet */
    uint64_t begin_ns;    /* the time of the first point */
};

void points_add(struct points *self, uint64_t time_ns, const uint64_t *values);

#pragma GCC visibility pop

#endif
