/* leak_judge.h — what a site gained run after run → whether it leaks, and if not, what it is instead.
 * In: changes in the order of their points, one at most for each point. Points are runs, or the readings of a series.
 * Out: a verdict with its figures. Pure: no memory, no tables. docs/leaks.md says the rules in prose. */
#ifndef MEMSTOW_LEAK_JUDGE_H
#define MEMSTOW_LEAK_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum leak_verdict {
    LEAK_NOTHING, /* it never gained anything */
    LEAK_FOUND,   /* it keeps growing */
    LEAK_ONE_OFF, /* it grew while warming up, or once or twice since */
    LEAK_PLATEAU, /* it grew, and does not any more, or ever more slowly; or what is old goes when something new comes
                   */
    LEAK_FLUCTUATES, /* it comes and goes */
    LEAK_YOUNG,      /* only the last runs left something: it may still be in use */
    LEAK_SMALL,      /* it keeps growing, by less than the floor */
    LEAK_KEPT,       /* it grows in an owner whose policy is keep */
    LEAK_UNDECIDED,  /* it grew in too few runs, or too unevenly, to tell */
    LEAK_THREADS,    /* it came with threads that were started: there is one for each of them */
    LEAK_VERDICTS
};

enum leak_confidence { LEAK_LOW, LEAK_MEDIUM, LEAK_HIGH };

/* What a point changed. `allocated` is what it took at the site, 0 where that is not known. */
struct leak_change {
    uint32_t point;
    int64_t bytes, blocks;
    uint64_t allocated;
};

/* Whatever a damaged file says: sums go round instead of over. */
static inline int64_t leak_sum(int64_t a, int64_t b) { return (int64_t)((uint64_t)a + (uint64_t)b); }

struct leak_rule {
    uint32_t points;
    /* True: a change is what is still there of what a run allocated. False: by how much the site holds more than
     * at the point before. */
    bool left;
    uint32_t young; /* so many of the last points are left out */
    /* What the same owner allocated at call stacks that are forgotten because nothing is left there: maybe at this one.
     */
    const struct leak_change *forgotten;
    size_t forgotten_count;
    uint64_t floor;       /* bytes a run: what grows by less is small */
    const uint32_t *runs; /* that each point stands for; NULL: one each */
};

struct leak_judgement {
    enum leak_verdict verdict;
    enum leak_confidence confidence;
    bool monotone;         /* it gained in each run that was judged, and lost in none */
    uint32_t first;        /* of the points that were judged: where it began to grow */
    uint32_t judged, grew; /* points from there on, and those that gained */
    double bytes_per_run, blocks_per_run;
};

/* So many of the first points are left out. */
uint32_t leak_warm_up(uint32_t points);
/* So many are judged. */
uint32_t leak_judged(const struct leak_rule *rule);

struct leak_judgement leak_judge(const struct leak_change *changes, size_t count, const struct leak_rule *rule);

/* "plateau" and so on; "high" and so on. */
const char *leak_verdict_name(enum leak_verdict verdict);
const char *leak_confidence_name(enum leak_confidence confidence);

#endif
