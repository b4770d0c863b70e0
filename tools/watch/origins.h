/* origins.h — the call stacks that opened descriptors of a running process, mapped its shared memory, or started its
 * threads.
 * In: a pid. Out: lines about the records of its ledger (snap_origin) that agree with /proc: the descriptor still is
 * the same file, socket or pipe; the record of a thread is not older than the thread. It never complains. */
#ifndef MEMSTOW_ORIGINS_H
#define MEMSTOW_ORIGINS_H

#include "tools/proc/holdings.h"
#include "tools/image/image.h"
#include "tools/symbols/symbols.h"

#include <stdio.h>

struct origins {
    pid_t pid;
    struct image image;
    struct symbols *symbols; /* names of the frames; NULL: the process's ledger could not be read */
    uint32_t told;           /* the stack of the last printed line of the list; 0: the list has no line yet */
};

void origins_load(struct origins *origins, pid_t pid);
void origins_clear(struct origins *origins);
/* The reason why nothing is known of a process; NULL: something may be known. */
const char *origins_missing(const struct origins *origins);
/* Begins a new list of lines. If a line has the same stack as the line before it, it says so, and does not repeat the
 * stack. */
void origins_list(struct origins *origins);
/* The reason why an open descriptor has no stack: it was inherited, or no hook saw its opening. Returns "" if the
 * descriptor has a stack, or if nothing is known of the process. Also returns "" for the other kind of handle
 * (holdings.h), a thing that is only mapped. */
const char *origins_without_stack(const struct origins *origins, const struct handle *handle);
/* origins_of_handle() and origins_of_task() print how long ago a handle was opened or mapped, or a thread was started,
 * and the call stack that did it. Each line is indented. If nothing is known of this, they print nothing. */
void origins_of_handle(struct origins *origins, const struct handle *handle, FILE *to, int indent);
void origins_of_task(struct origins *origins, const struct task *task, FILE *to, int indent);

#endif
