/* moment.h — a running process as one profile: the memory that is live now, and the allocations since the last profile.
 * In: a process, and what it had allocated at the last profile (churn.h). Out: a compressed profile of pprof in memory.
 */
#ifndef MEMSTOW_MOMENT_H
#define MEMSTOW_MOMENT_H

#include "tools/push/churn.h"
#include "tools/symbols/symbols.h"

#include <sys/types.h>

/* A process that is looked at again and again. Before the first look, all members but `pid` are zero. */
struct moment {
    pid_t pid;
    uint64_t start_ns, looked_ns; /* start of its ledger; time of the last look, 0: never */
    uint32_t failed_looks;        /* how many in a row; the caller counts them */
    struct churn churn;
    struct symbols *symbols; /* names stay from one profile to the next */
    char name[64];
    char *profile; /* the caller frees it */
    size_t length;
};

/* Makes the next profile. Returns 0, or an exit code after an error message. */
int moment_take(struct moment *moment);
void moment_clear(struct moment *moment);

#endif
