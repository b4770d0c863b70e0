/* tracked.h — the processes that keep a ledger now and that the caller may look at. Nothing lists such processes, so
 * each process in /proc is looked at.
 * In: /proc. Out: a list by pid, with figures of each ledger's header, exact to 1 MiB. */
#ifndef MEMSTOW_TRACKED_H
#define MEMSTOW_TRACKED_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct tracked {
    pid_t pid;
    char name[32], path[4096]; /* path: of the ledger; "": it is in memory only */
    uint64_t start_ns;         /* when the ledger began (monotonic clock); it tells programs with the same pid apart */
    uint64_t elapsed_ns, live, peak;
};

struct tracked_list {
    struct tracked *items; /* the caller frees them */
    size_t count, capacity;
};

/* Adds the processes to the list, which is all zeros before the call. Returns 0, or -1 with the reason: /proc cannot be
 * read, or this command lacks descriptors or memory. The list may have items in both cases. */
int tracked_collect(struct tracked_list *list, char *error, size_t error_size);

#endif
