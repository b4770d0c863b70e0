/* process.h — the life of tracking in this process: begun at the first event, begun anew in a forked child, ended.
 * In: the environment that `memstow run` set. Out: whether events count, and the mark of this process's blocks. */
#ifndef MEMSTOW_PROCESS_H
#define MEMSTOW_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/base/next.h"
#include "preload/shared/os.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

enum process_stage { PROCESS_UNSET, PROCESS_BEGINNING, PROCESS_TRACKED, PROCESS_UNTRACKED };

/* On a page of its own that the kernel wipes in a forked child, however it was forked: a child finds mark 0 and
 * stage UNSET, and begins a ledger of its own at its first event (nothing happens for vfork and exec). */
struct process_page {
    uint32_t mark;      /* in the header of a block of this process, when the fast path may be taken; else 0 */
    uint32_t mark_here; /* the same and the site, when events count at account_here; 0 when each is looked up */
    uint32_t small;     /* below this size the fast path may be taken: 0 or SNAP_LARGE_BYTES */
    uint32_t stage;
    uint32_t entering; /* sandbox.c: how many threads are on their way into one */
    uint32_t note;     /* header_note_sign of this process */
    const void *turn;  /* sandbox.c: which of them stops or starts our threads */
    char pad[OS_PAGE - 6 * sizeof(uint32_t) - sizeof(void *)];
};
extern struct process_page process_page;

/* The mark of this process's blocks, fast path or not. */
extern uint32_t process_mark;
/* What serves raw memory. Only over NEXT_FOREIGN can a pointer that is not ours look like one that is. */
extern enum next_kind process_next;

/* Before the first event: what is to be counted comes from CUPTI, and no hook sees anything (libmemstow_cupti.so). */
void process_is_from_cupti(void);

/* Whether events are to be counted; begins tracking when that is still to do. False also while it begins. */
bool process_begin(void);

static inline bool process_tracked(void) { return likely(process_page.stage == PROCESS_TRACKED) || process_begin(); }

/* Whether this is a child that runs in its parent's memory until it execs: what it does to itself is not ours. */
bool process_is_vfork_child(void);

/* Asks libc to tell of forks and of quick_exit. Once, at the start, from no hook. */
void process_watch(void);

/* Once tracking has begun, and again when tags come into use (tags.h). */
void process_allow_fast_path(void);

/* The end of the process, or of this image of it. Does nothing in a vfork child and the second time. */
void process_end(enum snap_state state);

/* Before an exec: what the next image of this process needs to know, MEMSTOW_EXEC=PID.STARTED.IMAGES, to stand in its
 * environment. False when there is nothing to tell: this process is not tracked, or its ledger is not kept. */
enum { PROCESS_EXEC_ROOM = 80 };
bool process_exec_variable(char to[PROCESS_EXEC_ROOM]);

/* About to exec (true), or come back from an exec that failed (false). */
void process_exec(bool before);

#pragma GCC visibility pop

#endif
