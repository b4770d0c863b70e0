/* lifecycle.h — one life of a program: started, used, closed, and looked at until nothing of it is left.
 * In: a scenario and which of the six tests. Out: figures and a verdict. */
#ifndef MEMSTOW_LIFECYCLE_H
#define MEMSTOW_LIFECYCLE_H

#include "tools/lifecycle/scenario.h"
#include "tools/watch/exempt.h"
#include "tools/launch/start.h"
#include "tools/diff/thresholds.h"

enum { LIFECYCLE_TESTS = 6, LIFECYCLE_REASONS = 8 };

struct lifecycle {
    const struct scenario *scenario;
    const char *here;            /* folder of the scenario's file */
    struct start *start;         /* how it is tracked; NULL: it is not */
    const struct exempt *exempt; /* who is to live on; NULL: nobody */
};

struct life {
    enum verdict verdict;
    bool own_fault; /* it failed before it was to be closed */
    char reasons[LIFECYCLE_REASONS][400];
    size_t reason_count;
    uint64_t ready_ns, gone_ns;         /* until it was ready; from close until all was gone, UINT64_MAX: never */
    uint64_t peak_bytes, close_bytes;   /* of all processes: the most, and when it was to be closed */
    uint64_t settled_bytes;             /* ten seconds later, */
    uint64_t growth_bytes, final_bytes; /* what came on top of that, and what was left at the end */
    uint32_t processes, threads;        /* the most at a time */
    size_t left_processes, left_traces; /* when the time was over */
    size_t kept_processes;              /* that live on, as they are to */
    int exit_code;                      /* -1: it had to be ended */
    char *details;                      /* who was there though it should be gone; NULL: nobody. free() */
    char *kept;                         /* who lives on, in a line; NULL, or "": nobody. free() */
};

/* "start and close", … of test 1 to 6. */
const char *lifecycle_name(unsigned test);
/* NULL, or the step that the scenario lacks for it. */
const char *lifecycle_lacks(const struct scenario *scenario, unsigned test);
/* 0, or an exit code after complaining: it cannot be started at all. Or somebody ended us by a signal: 128 + that. */
int lifecycle_run(const struct lifecycle *lifecycle, unsigned test, struct life *life);

#endif
