/* shutdown_list.h — process_registry.json: the processes that a program has started. `memstow reap` reads it when the
 * program is gone.
 * In: processes. Out: the file, which is replaced as a whole. A list that is still needed is never overwritten. A list
 * is needed while its program runs, or while a listed process runs that was to end with that program. The functions
 * make only system calls, and only one thread at a time may use them. */
#ifndef MEMSTOW_SHUTDOWN_LIST_H
#define MEMSTOW_SHUTDOWN_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shutdown/shutdown_file.h"

#pragma GCC visibility push(hidden)

/* Sets the path of new lists; a list that exists stays where it is. "": no change. False: the path is too long. */
bool shutdown_list_file(const char *path);

/* A list that is being written: shutdown_list_begin, then shutdown_list_add for each process, then
 * shutdown_list_end. */
struct shutdown_list {
    int fd;
    bool some, failed;             /* some: the list has a process; failed: something could not be written */
    char path[SHUTDOWN_PATH + 64]; /* the temporary name, in the folder of the list that it replaces */
};
struct shutdown_listed {
    uint64_t start_ticks, number; /* number: the last part of MEMSTOW_STARTED in its environment; 0: none */
    uint32_t pid;
    bool keep;
    const char *name;
};
/* Begins a list. False: the list cannot be written. Then shutdown_list_add does nothing, and shutdown_list_end returns
 * false. */
bool shutdown_list_begin(struct shutdown_list *list);
void shutdown_list_add(struct shutdown_list *list, const struct shutdown_listed *process);
/* Gives the list its final name. Returns false if the list could not be written. In this case the former list stays. */
bool shutdown_list_end(struct shutdown_list *list);
/* Removes the list, if this process has written it. */
void shutdown_list_remove(void);
/* In a forked child: forgets the list, which is the parent's. */
void shutdown_list_reset(void);

#pragma GCC visibility pop

#endif
