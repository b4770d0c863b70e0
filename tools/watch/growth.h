/* growth.h — where a running process grows: two looks at its ledger, compared by model, node, run and call stack, as
 * `memstow diff` does. In: a pid. Out: lines. It complains about nothing: a process that has no ledger has no such
 * lines.
 */
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
    struct snap_header header; /* by which the ledger is known again */
};

/* 0, or -1: no ledger of it can be read. */
int growth_begin(struct growth_look *growth, pid_t pid);
void growth_end(struct growth_look *growth);
/* Looks again, once: writes what grew most since, at most `most` call stacks, each behind `indent` blanks. Returns
 * bytes a second, or 0 when it cannot be told. */
double growth_tell(struct growth_look *growth, FILE *to, int indent, size_t most);

#endif
