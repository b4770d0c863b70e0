/* shutdown_log.h — the two files of a shutdown: what was done, line by line, and the list of processes.
 * In: steps; processes. Out: shutdown.log (JSON lines, appended) and process_registry.json (replaced as a whole). Only
 * system calls: the thread that ends the process when its time is over writes here, too. */
#ifndef MEMSTOW_SHUTDOWN_LOG_H
#define MEMSTOW_SHUTDOWN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "line.h"

#pragma GCC visibility push(hidden)

enum { SHUTDOWN_PATH = 4096 };

/* Paths that are not absolute begin in the present folder; NULL or "": as it is. False: too long. */
bool shutdown_log_files(const char *log, const char *registry);
/* The log has its path from here on: in the present folder, unless it has one. */
void shutdown_log_ready(void);
/* Time counts from here. */
void shutdown_log_begin(void);
void shutdown_log_line(struct line *line, const char *step);
void shutdown_log_write(struct line *line);
/* All in one. `name` NULL: none. */
void shutdown_log_step(const char *step, const char *name, int64_t result, uint64_t took_ns);

/* A list of processes: begun, one by one, ended. False: it could not be written. */
struct shutdown_list {
    int fd;
    bool some, failed;
    char path[SHUTDOWN_PATH + 8];
};
bool shutdown_list_begin(struct shutdown_list *list);
void shutdown_list_add(struct shutdown_list *list, uint32_t pid, uint64_t start_ticks, const char *name, bool keep);
bool shutdown_list_end(struct shutdown_list *list);
/* If this process has written it. */
void shutdown_list_remove(void);
/* In a forked child: the list there is is its parent's. */
void shutdown_list_reset(void);

#pragma GCC visibility pop

#endif
