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
/* SIGTERM, after that time SIGKILL; 0: SIGKILL at once, without a lock, and a moment for it to
 * come to pass. How many were killed. */
int64_t shutdown_processes_end(uint64_t patience_ns);
/* How many are still there that should not be, of those that are registered, that this program has started, and that
 * these have; the first of them are lines of the log. */
int64_t shutdown_processes_left(void);
/* The same as of that moment: the pids of the first, as many as there is room for. */
int64_t shutdown_processes_were_left(int32_t *pids, uint32_t room);
/* In a forked child: they are its parent's. */
void shutdown_processes_reset(void);

#pragma GCC visibility pop

#endif
