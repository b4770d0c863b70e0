/* process.h — begins and ends tracking in this process. In between, its events are counted in a ledger of its own.
 * In: the environment that `memstow run` set. Out: whether events count. Tracking begins at the first event, anew in
 * each forked child. */
#ifndef MEMSTOW_PROCESS_H
#define MEMSTOW_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/next.h"
#include "preload/base/tracked.h"
#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* libmemstow_cupti.so, which has no hooks, calls it before the first event. All that is counted then comes from
 * CUPTI. */
void process_is_from_cupti(void);

/* Whether events are to be counted. Begins tracking if it has not begun yet. False also while tracking is just
 * beginning. */
bool process_begin(void);

static inline bool process_tracked(void) { return likely(tracked_page.stage == TRACKED_YES) || process_begin(); }

/* Whether this is a vfork child: it runs in its parent's memory until it execs. When it changes its own process, for
 * example by entering a sandbox, the parent's data must stay as they are. */
bool process_is_vfork_child(void);

/* Asks libc to report forks and quick_exit. Call it once, at the start, outside of hooks. */
void process_watch(void);

/* Lets malloc and free take the fast path (hook_host.c), if the process allows that. Call it when tracking has begun,
 * and again when tags come into use (tags.h). */
void process_allow_fast_path(void);

/* Call it when the process ends. It completes the process's ledger. `state` says how the process ended. In a vfork
 * child, and when called a second time, process_end does nothing. */
void process_end(enum snap_state state);

/* Call it before an exec. It writes MEMSTOW_EXEC=PID.STARTED.IMAGES, a variable that the next image of this process
 * (the program that it becomes) needs in its environment. If this process is not tracked or is a vfork child, or if its
 * ledger is not kept, it writes nothing and returns false. */
enum { PROCESS_EXEC_SIZE = 80 };
bool process_exec_variable(char to[PROCESS_EXEC_SIZE]);

/* Call it with `before` true before an exec: it ends the ledger. If the exec fails, call it with `before` false: the
 * process goes on with a ledger. */
void process_exec(bool before);

#pragma GCC visibility pop

#endif
