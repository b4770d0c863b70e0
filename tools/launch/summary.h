/* summary.h — what `memstow run` says at the end, from the files of the run. */
#ifndef MEMSTOW_SUMMARY_H
#define MEMSTOW_SUMMARY_H

#include "tools/launch/launch.h"

#include <stdbool.h>
#include <stdint.h>

struct summary {
    const char *command;   /* as typed */
    const char *directory; /* where the files of the run are */
    const char *given;     /* what was asked for with -o, NULL when it has conversions, or nothing was; */
    const char *file;      /* and its last name */
    uint8_t run_id[16];
    bool verify, from_cupti, injection_given_up; /* as in struct start */
    bool expected_none;                          /* it was said before that this program cannot be tracked */
    const struct launch *launch;
};

void summary_print(const struct summary *summary);

#endif
