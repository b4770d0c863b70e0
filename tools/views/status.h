/* status.h — the live status of `memstow run` on a terminal.
 * It stands at the right end of the line that the program is writing to, and the cursor goes back to where it was: what
 * the program writes stays whole, a prompt of half a line, too. */
#ifndef MEMSTOW_STATUS_H
#define MEMSTOW_STATUS_H

#include "tools/reader/source.h"

#include <stdbool.h>
#include <sys/types.h>

struct status {
    pid_t pid;
    struct source source; /* the ledger, once it was found */
    bool found;
    int width; /* columns that it takes now; 0: not shown */
    uint64_t start_ns;
};

void status_begin(struct status *status, pid_t pid);
void status_tick(void *status);         /* rewrites it */
void status_end(struct status *status); /* clears it */

#endif
