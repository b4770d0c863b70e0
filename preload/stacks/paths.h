/* paths.h — the sites of a thread's stacks, by the path: a hash of the whole stack.
 * In: a path (memo.h). Out: the site. The table is a cache: a path that is missing there is looked up in the tree. Each
 * table belongs to one thread, and grows when needed. Paths of different generations differ, so no path needs to be
 * forgotten. */
#ifndef MEMSTOW_PATHS_H
#define MEMSTOW_PATHS_H

#include <stdint.h>

#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

struct known_path {
    uint64_t path;
    uint32_t site; /* 0: the entry is empty */
};

enum { PATHS_WAYS = 4 }; /* entries of a set, in one cache line */

struct paths_table {
    uint32_t bits; /* bits that choose the set */
    struct known_path known[] __attribute__((aligned(64)));
};

struct paths {
    struct paths_table *table; /* NULL: there is none yet */
    uint32_t missed;           /* how many paths were added since the table got its size */
};

static inline struct known_path *paths_set(struct paths_table *table, uint64_t path) {
    return table->known + (path >> (64 - table->bits)) * PATHS_WAYS;
}

/* The site of a path; 0: the path is not in the table. */
static inline uint32_t paths_find(const struct paths *self, uint64_t path) {
    if (unlikely(!self->table)) return 0;
    const struct known_path *set = paths_set(self->table, path);
    for (int i = 0; i < PATHS_WAYS; i++)
        if (set[i].path == path) return set[i].site;
    return 0;
}

void paths_add(struct paths *self, uint64_t path, uint32_t site);

/* Forgets all paths. Call it after a signal handler left by longjmp, because the handler may have interrupted
 * paths_add. */
void paths_forget(struct paths *self);

#pragma GCC visibility pop

#endif
