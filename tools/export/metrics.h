/* metrics.h — figures of processes for Prometheus and what reads its formats.
 * In: processes, one after the other. Out: all of them, family by family, as Prometheus's text format or as
 * OpenMetrics. Labels are bounded: models beyond a number are summed as one. */
#ifndef MEMSTOW_METRICS_H
#define MEMSTOW_METRICS_H

#include "tools/image/image.h"
#include "tools/leaks/leaks.h"

#include <stdio.h>

struct sample;

struct metrics {
    struct sample *samples; /* in the order in which they were added */
    size_t count, capacity;
    size_t models; /* how many models of a process are named; the caller sets it */
};

/* Adds the figures of a running process. Call stacks are not needed. Returns 0, or -1: no memory. */
int metrics_add(struct metrics *metrics, const struct image *image);
/* Adds what leaks in it. Returns 0 or -1. */
int metrics_add_leaks(struct metrics *metrics, const struct image *image, const struct leaks *leaks);
/* Prometheus's text format names counters, units and its end in another way. */
enum metrics_form { METRICS_OPENMETRICS, METRICS_PROMETHEUS };
void metrics_write(const struct metrics *metrics, enum metrics_form form, FILE *to);
void metrics_end(struct metrics *metrics);

#endif
