/* shutdown.h — how a program ends: its handlers run by stage and dependency, each with a time limit, and one limit
 * holds for the whole ending.
 * In: handlers; the call to begin. Out: results, a log (shutdown_log.h), and the forced end of a process that does not
 * end by itself. It needs no ledger. */
#ifndef MEMSTOW_SHUTDOWN_H
#define MEMSTOW_SHUTDOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "include/memstow.h"

#pragma GCC visibility push(hidden)

/* Register a handler, begin a shutdown, and let a signal begin one. Functions of memstow.h call these after they have
 * checked the arguments. They return 0 or -errno. `status`: the exit status of the process if it must be forced to
 * end. */
int shutdown_handler(const struct memstow_handler *handler, const char *name, const char *after);
int shutdown_begin(const char *reason, uint64_t limit_ns, int status);
int shutdown_on_signal(int number, uint64_t limit_ns, int status);
/* Notes in the log that a stage (enum memstow_stage) begins, if a shutdown has begun. A second call in a row for the
 * same stage does nothing. */
void shutdown_stage(uint32_t stage);
/* Runs the handlers of a stage. Those of the stage CANCEL run only if a handler of DRAIN failed or was late. Returns
 * how many handlers failed or were late, or -EALREADY if another thread runs a stage. */
int64_t shutdown_run(uint32_t stage);
/* Notes in the log which threads, processes and descriptors are left. Returns how many threads and processes are left,
 * or -ENOENT if no shutdown has begun. If `goes_on` is true, the shutdown is called off, so its limit no longer
 * holds. */
int64_t shutdown_end(bool goes_on);
/* In a forked child: forgets the parent's handlers, processes, threads and shutdown. Call it before any other function
 * of this file. */
void shutdown_check_process(void);

/* The limits that hold if a caller gives none, in seconds. */
enum { SHUTDOWN_LIMIT_S = 30, SHUTDOWN_HANDLER_S = 10, SHUTDOWN_PROCESS_S = 5, SHUTDOWN_THREAD_S = 3 };

#pragma GCC visibility pop

#endif
