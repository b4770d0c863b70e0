/* moment.h — a running process as one profile: what is live now, and what was allocated since the last profile.
 * In: a process, its churn. Out: a compressed profile of pprof in memory. */
#ifndef MEMSTOW_MOMENT_H
#define MEMSTOW_MOMENT_H

#include "tools/push/churn.h"

#include <sys/types.h>

/* A process that is looked at again and again. Begin with zeros, and its pid. */
struct moment {
    pid_t pid;
    uint64_t start_ns, looked_ns; /* of its ledger; when it was looked at last, 0: never */
    struct churn churn;
    char name[64];
    char *profile; /* the caller frees it */
    size_t length;
};

/* Returns 0, or an exit code after a complaint. */
int moment_take(struct moment *moment);
void moment_clear(struct moment *moment);

#endif
