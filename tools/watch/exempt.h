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

/* Adds the names in `list`, for example "A,B". The string is split in place, and must live as long as `exempt`. If the
 * list is NULL, no names are added, and only registered processes with "keep" are exempt. Returns false if a name is
 * empty, or if there are too many names. */
bool exempt_take(struct exempt *exempt, char *list);
/* Whether a process is exempt: by its name in /proc, by its program's file, or by the script or module that it runs. */
bool exempt_has_process(const struct exempt *exempt, pid_t pid, const char *name);
/* Loads the list of processes (registry.h) at `path`, and keeps only its exempt processes: those with "keep", and those
 * with one of the names. The result is empty if no list can be read. Call registry_clear() on the result. */
void exempt_load_registered(const struct exempt *exempt, const char *path, struct registry *registry);

#endif
