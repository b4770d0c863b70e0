/* leak_judge.h — judges whether a site leaks, from its growth run after run. If the site does not leak, the verdict
 * names the kind of growth.
 * In: changes in the order of their points, at most one change for each point. A point is a run, or a reading of the
 * process's memory at some time. Out: a verdict with figures. Pure: it allocates no memory. docs/leaks-rules.md
 * explains the rules. */
#ifndef MEMSTOW_LEAK_JUDGE_H
#define MEMSTOW_LEAK_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum leak_verdict {
    LEAK_NOTHING,    /* the site never grew */
    LEAK_FOUND,      /* it keeps growing */
    LEAK_ONE_OFF,    /* it grew while warming up, or seldom since */
    LEAK_PLATEAU,    /* it grew, but stopped or slowed down; or new memory replaces old memory */
    LEAK_FLUCTUATES, /* its memory comes and goes */
    LEAK_YOUNG,      /* only the last runs left memory, which may still be in use */
    LEAK_SMALL,      /* it keeps growing, by less than the floor */
    LEAK_KEPT,       /* it grows, but the policy of its owner is to keep the memory */
    LEAK_UNDECIDED,  /* it grew in too few runs, or too unevenly, for a verdict */
    LEAK_THREADS,    /* it grows with the number of threads, because each thread has a part of the memory */
    LEAK_VERDICTS
};

enum leak_confidence { LEAK_LOW, LEAK_MEDIUM, LEAK_HIGH };

/* The change of a site's memory at a point. `allocated`: the bytes that the run allocated at the site, if the point is
 * a run; 0: not known. */
struct leak_change {
    uint32_t point;
    int64_t bytes, blocks;
    uint64_t allocated;
};

/* A damaged file may cause an overflow here: sums wrap around, which is defined. */
static inline int64_t leak_sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

struct leak_rule {
    uint32_t points;
    /* True: a change is the memory that is left of a run's allocations. False: a change is the difference in the site's
     * memory from the previous point to this one. */
    bool left;
    uint32_t young; /* how many points at the end are not judged: their memory may be in use or garbage */
    /* Allocations of the site's owner at call stacks that memstow has forgotten (folded), because nothing was left
     * there. Some of these allocations may be from the site's own stack. */
    const struct leak_change *forgotten;
    size_t forgotten_count;
    uint64_t floor;       /* in bytes a run: growth below it counts as small */
    const uint32_t *runs; /* number of runs that each point stands for; NULL: one each */
};

struct leak_judgement {
    enum leak_verdict verdict;
    enum leak_confidence confidence;
    bool monotone;         /* the site grew at each judged point, and shrank at none */
    uint32_t first;        /* the point where growth began, among the judged points */
    uint32_t judged, grew; /* judged: number of points from `first` on; grew: number of these with growth */
    double bytes_per_run, blocks_per_run;
};

/* How many points at the beginning are not judged, because the program warms up. */
uint32_t leak_warm_up(uint32_t points);
/* How many points are judged: all but the warm-up and the young points. */
uint32_t leak_judged(const struct leak_rule *rule);

struct leak_judgement leak_judge(const struct leak_change *changes, size_t count, const struct leak_rule *rule);

/* Words such as "plateau" for a verdict, and "high" for a confidence. */
const char *leak_verdict_name(enum leak_verdict verdict);
const char *leak_confidence_name(enum leak_confidence confidence);

#endif
