/* leaks_follow.h — follows a running process. Reads its ledger after each of its runs or, as long as no run has ended,
 * from time to time.
 * In: a pid. Out: points (leak_sites.h), and the series, which is a file with these points. The file can be read at any
 * time. But while the process is followed, the file may lack the last points. The process does not notice that its
 * ledger is read. A run that ends while the ledger is read has no reading of its own: the next reading covers it and
 * the run after it. */
#ifndef MEMSTOW_LEAKS_FOLLOW_H
#define MEMSTOW_LEAKS_FOLLOW_H

#include "tools/leaks/leak_sites.h"
#include "tools/subject/subject.h"

struct follow {
    pid_t pid;
    const char *file;
    uint32_t runs;     /* stop after this many runs; 0: stop only at the process's end, SIGINT or SIGTERM */
    uint64_t every_ns; /* nanoseconds between two readings, as long as no run has ended */
};

/* Returns an exit code. The subject stays open with the last reading that was kept. A reading from the last second
 * before the process ended is dropped, because the process may have freed the memory that it leaks. The first reading,
 * however, is kept in any case. The sites have the readings since the last exec. */
int leaks_follow(const struct follow *self, struct subject *subject, struct leak_sites *sites);

#endif
