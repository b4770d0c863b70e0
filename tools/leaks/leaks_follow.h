/* leaks_follow.h — a process that runs → a reading after each of its runs.
 * In: a pid. Out: points, and a series file that is whole at any time. It only reads: the process does nothing for it
 * and knows nothing of it. A run that ends while another is being read has its reading together with the next. */
#ifndef MEMSTOW_LEAKS_FOLLOW_H
#define MEMSTOW_LEAKS_FOLLOW_H

#include "tools/leaks/leak_sites.h"
#include "tools/subject/subject.h"

struct follow {
    pid_t pid;
    const char *file;
    uint32_t runs; /* to wait for; 0: until the process ends, or SIGINT or SIGTERM comes */
};

/* Exit code. The subject is open then, with what was read last, and so are the sites. */
int leaks_follow(const struct follow *self, struct subject *subject, struct leak_sites *sites);

#endif
