/* shutdown_list.h — process_registry.json: the processes that a program has started, for `memstow reap` when it is
 * gone. In: processes. Out: the file, replaced as a whole. It never writes over the list of a running program, nor over
 * the list of a program that is gone while a process of it is there. Only system calls. One thread at a time. */
#ifndef MEMSTOW_SHUTDOWN_LIST_H
#define MEMSTOW_SHUTDOWN_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shutdown/shutdown_log.h"

#pragma GCC visibility push(hidden)

/* Where a list goes from now on; one that is written stays where it is. "": as it is. False: too long. */
bool shutdown_list_file(const char *path);

/* A list: begun, processes one by one, ended. False: it could not be written. */
struct shutdown_list {
    int fd;
    bool some, failed;
    char path[SHUTDOWN_PATH + 64]; /* while it is written: beside the one that it replaces */
};
bool shutdown_list_begin(struct shutdown_list *list);
struct shutdown_listed {
    uint64_t start_ticks, number; /* number: in the mark of what it started; 0: it gave none */
    uint32_t pid;
    bool keep;
    const char *name;
};
void shutdown_list_add(struct shutdown_list *list, const struct shutdown_listed *process);
bool shutdown_list_end(struct shutdown_list *list);
/* If this process has written it. */
void shutdown_list_remove(void);
/* In a forked child: the list there is is its parent's. */
void shutdown_list_reset(void);

#pragma GCC visibility pop

#endif
