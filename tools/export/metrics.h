/* metrics.h — figures of processes for Prometheus and other programs that read its formats.
 * In: images of processes, one after the other. Out: the figures of all processes, as Prometheus's text format or as
 * OpenMetrics: first all samples with one name (a family), then those of the next. The number of labels is limited:
 * only the largest models are named, and all other models are summed as "(others)". */
#ifndef MEMSTOW_METRICS_H
#define MEMSTOW_METRICS_H

#include "tools/image/image.h"
#include "tools/leaks/leaks.h"

#include <stdio.h>
#include <sys/types.h>

struct sample;

struct metrics {
    struct sample *samples; /* in the order in which they were added */
    size_t count, capacity;
    size_t models; /* how many models of a process are named; the caller sets it */
    pid_t pid;     /* the process that was added last */
};

/* Adds the figures of a running process. Call stacks are not needed. `pid`: the process's id in the namespace of
 * this command. The ledger has only the id in the process's own namespace, and processes of several containers may have
 * the same id there. Returns 0, or -1: no memory. */
int metrics_add(struct metrics *metrics, const struct image *image, pid_t pid);
/* Adds the number and the growth of the leaks of the process that was added last. If no verdict is possible, adds
 * nothing. Returns 0, or -1: no memory. */
int metrics_add_leaks(struct metrics *metrics, const struct image *image, const struct leaks *leaks);
/* The two forms differ in the names of counters, in lines about units, and in the end of the text. */
enum metrics_form { METRICS_OPENMETRICS, METRICS_PROMETHEUS };
void metrics_write(const struct metrics *metrics, enum metrics_form form, FILE *to);
void metrics_end(struct metrics *metrics);

#endif
