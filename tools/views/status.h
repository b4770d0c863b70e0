/* status.h — the live status of `memstow run` and `memstow watch` on a terminal.
 * In: the pid of the program. Out: its live memory and its peak, at the right end of the terminal line to which the
 * program writes. The cursor then returns to its position, so the program's output stays whole, even an unfinished
 * line. */
#ifndef MEMSTOW_STATUS_H
#define MEMSTOW_STATUS_H

#include "tools/reader/source.h"

#include <stdbool.h>
#include <sys/types.h>

struct status {
    pid_t pid;
    struct source source; /* the ledger, once it is found */
    bool found;
    int width; /* columns of the text on the terminal; 0: not shown */
    uint64_t start_ns;
};

void status_begin(struct status *status, pid_t pid);
/* Draws the status again. launch_wait() calls it; `context` is a struct status. */
void status_tick(void *context);
/* Clears the status from the terminal. */
void status_end(struct status *status);

#endif
