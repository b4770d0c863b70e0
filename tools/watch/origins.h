/* origins.h — which call stack opened a descriptor of a running process, or started a thread of it.
 * In: a pid. Out: lines, from what its ledger noted (snap_birth) where that fits what /proc shows: the same number for
 * the same file, socket or pipe; a thread that is not older. It complains about nothing. */
#ifndef MEMSTOW_ORIGINS_H
#define MEMSTOW_ORIGINS_H

#include "tools/proc/holdings.h"
#include "tools/image/image.h"
#include "tools/symbols/symbols.h"

#include <stdio.h>

struct origins {
    pid_t pid;
    struct image image;
    struct symbols *symbols; /* NULL: nothing is known */
    uint32_t told;           /* the stack that was written last; 0: none in this list */
};

void origins_load(struct origins *origins, pid_t pid);
void origins_clear(struct origins *origins);
/* Why nothing is known of a process; NULL: something may be. */
const char *origins_missing(const struct origins *origins);
/* A new list begins: where a stack is that of the line before, only that is said. */
void origins_list(struct origins *origins);
/* What there is to say of one that has no stack: that it was inherited, or that nothing that is seen opened it; "" of
 * one that has one, and where nothing is known at all. */
const char *origins_without_stack(const struct origins *origins, const struct handle *handle);
/* When it was opened or started, and where, each line behind so many blanks; nothing where that is not known. */
void origins_of_handle(struct origins *origins, const struct handle *handle, FILE *to, int indent);
void origins_of_task(struct origins *origins, const struct task *task, FILE *to, int indent);

#endif
