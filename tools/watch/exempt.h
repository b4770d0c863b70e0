/* exempt.h — which processes of a program are to live on when it ends: --server-mode of `watch` and `lifecycle`.
 * In: names, and the lists of processes that programs keep (process_registry.json). Out: yes or no. */
#ifndef MEMSTOW_EXEMPT_H
#define MEMSTOW_EXEMPT_H

#include "tools/watch/registry.h"

enum { EXEMPT_NAMES_MOST = 64 };

struct exempt {
    const char *names[EXEMPT_NAMES_MOST];
    size_t count;
    const char *folder; /* in which the program was started; NULL: the present one */
};

/* Adds the names of "A,B", which is cut into them and stays with the caller; NULL: none, only what is registered as to
 * be kept. False: a name is empty, or there are more than can be. */
bool exempt_take(struct exempt *exempt, char *list);
/* By what /proc calls it, by the file of its program, or by the script or module that this runs. */
bool exempt_has_process(const struct exempt *exempt, pid_t pid, const char *name);
/* A list of processes, of whomever it is, with only those in it that are to live on: to be kept, or registered under
 * one of the names. Empty when there is none. registry_clear() it. */
void exempt_load_registered(const struct exempt *exempt, const char *path, struct registry *registry);

#endif
