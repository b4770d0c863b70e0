/* leaks_follow.h — follows a running process, and takes a reading after each of its runs.
 * In: a pid. Out: points, and a series file that is whole at any time. It only reads the ledger, and the process does
 * not notice. If a run ends during a reading, the next reading covers both runs. */
#ifndef MEMSTOW_LEAKS_FOLLOW_H
#define MEMSTOW_LEAKS_FOLLOW_H

#include "tools/leaks/leak_sites.h"
#include "tools/subject/subject.h"

struct follow {
    pid_t pid;
    const char *file;
    uint32_t runs; /* number of runs to wait for; 0: until the process ends, or SIGINT or SIGTERM comes */
};

/* Returns an exit code. The subject stays open with the last reading that was kept. If the process has ended, a reading
 * of its last second is dropped, unless it is the first, because the process may have freed what it leaks. The sites
 * keep the readings since the last exec. */
int leaks_follow(const struct follow *self, struct subject *subject, struct leak_sites *sites);

#endif
