/* shutdown_log.h — the log of a shutdown, line by line.
 * In: steps. Out: shutdown.log (JSON lines, appended). It makes only system calls, because it is also called by the
 * thread that ends the process at the time limit. */
#ifndef MEMSTOW_SHUTDOWN_LOG_H
#define MEMSTOW_SHUTDOWN_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/line.h"

#pragma GCC visibility push(hidden)

/* Sets the path of the log. If `path` is "", nothing changes. Returns false if the path is too long. */
bool shutdown_log_file(const char *path);
/* Sets the path of the log to shutdown.log in the present folder, unless the log has a path already. */
void shutdown_log_ready(void);
/* Begins the log of a shutdown: times in its lines count from this call. */
void shutdown_log_begin(void);
/* Begins a line about a step of the shutdown, with the time. */
void shutdown_log_line(struct line *line, const char *step);
/* Ends a line, and appends it to the log. */
void shutdown_log_write(struct line *line);
/* Writes a line about a step: its result (0 or -errno) and how long it took. `name` says whose step it is, and may be
 * NULL. */
void shutdown_log_step(const char *step, const char *name, int64_t result, uint64_t took_ns);

/* Returns the age of a process or thread in milliseconds. `start_ticks` is field 22 of its /proc/PID/stat. Returns 0 if
 * `start_ticks` is 0 (unknown) or is not in the past. */
uint64_t shutdown_log_age_ms(uint64_t start_ticks);

#pragma GCC visibility pop

#endif
