/* live.h — opens the ledger that a running process keeps now.
 * In: a pid. Out: an open source, or the reason why there is none. It never stops the process or writes to it. */
#ifndef MEMSTOW_LIVE_H
#define MEMSTOW_LIVE_H

#include "tools/reader/source.h"

#include <stdbool.h>
#include <sys/types.h>

struct live {
    struct source source; /* a file or the process's memory; call source_map before reading more than the header */
    char path[4096];      /* the ledger's path, as the process sees it; "": it is in memory only */
    bool unlinked;        /* the file was deleted */
};

/* Finds and opens the ledger. Returns 0. Returns -1 with the reason in `error`, if there is no such process, it is not
 * tracked, or permission is denied. Returns -errno with the reason, if this command itself lacks descriptors or memory,
 * or there is no /proc (-ENOSYS): in these cases the process may be tracked. */
int live_open(struct live *live, pid_t pid, char *error, size_t error_size);

/* Between an exec and the beginning of the next program the process has no ledger. So a caller that looks at a process
 * again and again gives it up only after this many looks in a row have failed. */
enum { LIVE_EXEC_LOOKS = 5 };

#endif
