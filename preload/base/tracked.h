/* tracked.h — whether this process is tracked, and the marks by which it recognises its blocks.
 * In: decisions of life/process.c at the beginning, in a forked child, and at the end. Out: words that any file of the
 * library may read at any time. To read them does not begin tracking: hooks and entry points of memstow.h call
 * process_tracked (life/process.h) for that. */
#ifndef MEMSTOW_TRACKED_H
#define MEMSTOW_TRACKED_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

/* UNSET: not decided yet. BEGINNING: a thread decides, and begins the ledger. YES, NO: tracked, or not. */
enum tracked_stage { TRACKED_UNSET, TRACKED_BEGINNING, TRACKED_YES, TRACKED_NO };

/* This structure lies on a page of its own, which the kernel wipes in a forked child, however it was forked. The child
 * finds mark 0 and stage TRACKED_UNSET, and begins a ledger of its own at its first event. (A child of vfork shares the
 * page until it calls exec, so it begins no ledger.) */
struct tracked_page {
    /* the mark in the headers of this process's blocks, while malloc and free may take the fast path (hook_host.c);
     * else 0 */
    uint32_t mark;
    /* `mark` plus sample_here, while all blocks are counted at the site sample_here (sample.h). 0: the site of each
     * event is looked up. */
    uint32_t mark_here;
    uint32_t small; /* blocks smaller than this may take the fast path; the value is 0 or SNAP_LARGE_BYTES */
    uint32_t stage;
    uint32_t entering; /* the number of threads that are entering a sandbox (sandbox.c) */
    /* memstow leaves notes in freed blocks. This number is a part of each note, and tells notes from other bytes
     * (header_note_sign) */
    uint32_t note;
    /* Over a foreign allocator (next.h), `mark` stays 0, and this takes its place, because headers there have a key
     * (host.h). */
    uint32_t keyed;
    const void *turn; /* for sandbox.c: the thread that stops or starts our threads */
    char pad[OS_PAGE - 8 * sizeof(uint32_t) - sizeof(void *)];
};
extern struct tracked_page tracked_page;

/* The mark of this process's blocks, whether or not the fast path may be taken. */
extern uint32_t tracked_mark;

#pragma GCC visibility pop

#endif
