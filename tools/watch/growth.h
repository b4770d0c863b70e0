/* growth.h — shows where a running process grows: reads its ledger twice, and compares the two readings (looks) by
 * model, node, run and call stack, as `memstow diff` does.
 * In: a pid. Out: lines. It never complains: for a process without a ledger there are no lines. */
#ifndef MEMSTOW_GROWTH_H
#define MEMSTOW_GROWTH_H

#include "tools/views/groups.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct growth_look {
    pid_t pid;
    struct groups groups;
    uint64_t since_ns, live_bytes;
    struct snap_header header; /* identifies the ledger */
};

/* Takes the first of two looks at the ledger. Returns 0, or -1 if there is no readable ledger or no memory. */
int growth_begin(struct growth_look *growth, pid_t pid);
void growth_end(struct growth_look *growth);
/* Looks a second time. Writes to `to` the call stacks that grew fastest, but no more than `most`, each line indented.
 * Ends both looks. Returns the growth of the process in bytes a second, or 0 if it is not known. */
double growth_tell(struct growth_look *growth, FILE *to, int indent, size_t most);

#endif
