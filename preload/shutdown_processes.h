/* shutdown_processes.h — the processes that a program has started and that end with it.
 * In: pids. Out: a list that outlives a crash, and their end. A pid counts with its start alone. */
#ifndef MEMSTOW_SHUTDOWN_PROCESSES_H
#define MEMSTOW_SHUTDOWN_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* 0 or -errno. */
int shutdown_process_add(uint32_t pid, const char *name, bool keep, uint64_t number);
int shutdown_process_forget(uint32_t pid);
/* SIGTERM, after that time SIGKILL; 0: SIGKILL at once, without a lock. How many were killed. */
int64_t shutdown_processes_end(uint64_t patience_ns);
/* How many are still there that should not be; each is a line of the log. */
int64_t shutdown_processes_left(void);
/* In a forked child: they are its parent's. */
void shutdown_processes_reset(void);

#pragma GCC visibility pop

#endif
