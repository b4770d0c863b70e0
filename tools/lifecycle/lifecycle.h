/* lifecycle.h — one life of a program: it is started, used, closed, and watched until nothing of it is left.
 * In: a scenario and the number of one of the six tests. Out: figures and a verdict. */
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
    struct start *start;         /* options of `memstow run` for the program; NULL: it runs without memstow */
    const struct exempt *exempt; /* exempt processes; NULL: none */
};

struct life {
    enum verdict verdict;
    bool own_fault; /* the program failed by itself, before it was closed */
    char reasons[LIFECYCLE_REASONS][400];
    size_t reason_count;
    /* ready_ns: the time until the program was ready. gone_ns: the time from the program's closing until all its
     * processes were gone; UINT64_MAX: some are left */
    uint64_t ready_ns, gone_ns;
    uint64_t peak_bytes, close_bytes;   /* memory of all processes: at the peak; when the program was closed */
    uint64_t settled_bytes;             /* their memory ten seconds after the closing */
    uint64_t growth_bytes, final_bytes; /* growth after these ten seconds; memory at the end */
    uint32_t processes, threads;        /* highest number at a time */
    /* how many processes were left at the end, and how many other traces, such as files */
    size_t left_processes, left_traces;
    size_t exempt_count; /* exempt processes that live on */
    int exit_code;       /* of the program; -1: it had to be ended */
    char *details;       /* text about processes that should be gone; NULL: none. The caller frees it */
    char *exempt;        /* exempt processes in one line; NULL or "": none. The caller frees it */
};

/* The name of test 1 to 6: "start and close", … */
const char *lifecycle_name(unsigned test);
/* The name of the phase that the test needs and the scenario lacks; NULL: none. */
const char *lifecycle_lacks(const struct scenario *scenario, unsigned test);
/* Runs a test. Returns 0; 128 + the number of the signal that asked this process to end; or, if the program cannot be
 * started at all, an exit code after an error message. */
int lifecycle_run(const struct lifecycle *lifecycle, unsigned test, struct life *life);

#endif
