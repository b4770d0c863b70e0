/* status.h — the live one-line status of `memstow run` on a terminal. */
#ifndef MEMSTOW_STATUS_H
#define MEMSTOW_STATUS_H

#include "source.h"

#include <stdbool.h>
#include <sys/types.h>

struct status {
    pid_t pid;
    struct source source; /* the ledger, once it was found */
    bool found, shown;
    uint64_t start_ns;
};

void status_begin(struct status *status, pid_t pid);
void status_tick(void *status);         /* rewrites the line */
void status_end(struct status *status); /* clears it */

#endif
