/* exempt.h — the processes of a program that are to live on at its end: --server-mode of `watch` and `lifecycle`.
 * In: names, and the lists of processes that programs keep (process_registry.json). Out: yes or no. */
#ifndef MEMSTOW_EXEMPT_H
#define MEMSTOW_EXEMPT_H

#include "tools/watch/registry.h"

enum { EXEMPT_NAMES_MOST = 64 };

struct exempt {
    const char *names[EXEMPT_NAMES_MOST];
    size_t count;
    const char *folder; /* the program's folder at its start; NULL: the current one */
};

/* Adds the names of "A,B". The string is split in place and must live on. NULL: no names; only registered processes
 * with "keep" are exempt. False: a name is empty, or there are too many. */
bool exempt_take(struct exempt *exempt, char *list);
/* Whether a process is exempt: by its name in /proc, by its program's file, or by the script or module that it runs. */
bool exempt_has_process(const struct exempt *exempt, pid_t pid, const char *name);
/* Loads from a list only the processes that are to live on: those to be kept, and those with one of the names. The
 * result is empty if there is no list. Call registry_clear() on it. */
void exempt_load_registered(const struct exempt *exempt, const char *path, struct registry *registry);

#endif
