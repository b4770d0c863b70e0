/* shutdown_processes.h — the processes that a program has started and that end with it.
 * In: pids. Out: a list that outlives a crash, and the end of the processes. A pid counts only together with its start
 * time. */
#ifndef MEMSTOW_SHUTDOWN_PROCESSES_H
#define MEMSTOW_SHUTDOWN_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* shutdown_process_add registers a process, and shutdown_process_forget ends the registration. Both functions return 0
 * or -errno. keep: the process is to live on. number: the last part of MEMSTOW_STARTED in the environment of the
 * process, or 0 if there is none. */
int shutdown_process_add(uint32_t pid, const char *name, bool keep, uint64_t number);
int shutdown_process_forget(uint32_t pid);
/* Ends the registered processes that are not to be kept, with their groups: sends SIGTERM, and SIGKILL after
 * `patience_ns`. If `patience_ns` is 0, it sends SIGKILL at once, takes no lock, and waits a moment for the effect.
 * Returns how many got SIGKILL (a process and its group count as one), or -ENOMEM. */
int64_t shutdown_processes_end(uint64_t patience_ns);
/* The number of processes that still run but should not: registered processes, other processes that this program has
 * started, and their kin. The log gets a line for each of the first 256. */
int64_t shutdown_processes_left(void);
/* Writes to `pids` the pids of processes that the latest call of shutdown_processes_left counted. Writes at most
 * `capacity` pids, and never more than 256. Returns how many processes that call counted. */
int64_t shutdown_processes_were_left(int32_t *pids, uint32_t capacity);
/* In a forked child: forgets the processes, which are the parent's. */
void shutdown_processes_reset(void);

#pragma GCC visibility pop

#endif
