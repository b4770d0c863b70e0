/* summary.h — the summary at the end of `memstow run` and `memstow watch`.
 * In: how the program ended, and the files of the run. Out: lines on standard error. */
#ifndef MEMSTOW_SUMMARY_H
#define MEMSTOW_SUMMARY_H

#include "tools/launch/launch.h"

#include <stdbool.h>
#include <stdint.h>

struct summary {
    const char *command;   /* as the user typed it */
    const char *directory; /* the folder of the run's files */
    const char *given;     /* the argument of -o; NULL if it has conversions such as %p or was not given */
    const char *file;      /* the last name in the path `given`; NULL if `given` is NULL */
    uint8_t run_id[16];
    bool verify, from_cupti, injection_given_up; /* as in struct start */
    /* a message before the start said that this program cannot be tracked */
    bool expected_none;
    const struct launch *launch;
};

void summary_print(const struct summary *summary);

#endif
