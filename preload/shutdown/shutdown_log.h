/* shutdown_log.h — the log of a shutdown, line by line. In: steps. Out: shutdown.log (JSON lines, appended). Only
 * system calls: the thread that ends the process at its limit writes here, too. */
#ifndef MEMSTOW_SHUTDOWN_LOG_H
#define MEMSTOW_SHUTDOWN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/line.h"

#pragma GCC visibility push(hidden)

enum { SHUTDOWN_PATH = 4096 };

/* "": as it is. False: too long. */
bool shutdown_log_file(const char *path);
/* The log has its path from here on: in the present folder, unless it has one. */
void shutdown_log_ready(void);
/* Time counts from here. */
void shutdown_log_begin(void);
void shutdown_log_line(struct line *line, const char *step);
void shutdown_log_write(struct line *line);
/* All in one. `name` NULL: none. */
void shutdown_log_step(const char *step, const char *name, int64_t result, uint64_t took_ns);

/* How long ago a process or thread began that began then (/proc/PID/stat); 0: it cannot be told. */
uint64_t shutdown_age_ms(uint64_t start_ticks);

/* For both files of a shutdown. A path that is not absolute begins in the present folder; `to` has SHUTDOWN_PATH.
 * False: it is too long. */
bool shutdown_path(char *to, const char *name);
/* Whether RLIMIT_FSIZE leaves room for so many bytes. */
bool shutdown_may_grow(int fd, size_t by);

#pragma GCC visibility pop

#endif
