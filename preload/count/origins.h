/* origins.h — the call stack that opened a descriptor or started a thread. Reports of what a process left behind use
 * it.
 * In: successful calls of the program. Out: a record in the ledger (snap_origin), found by the descriptor's number or
 * the thread's slot. A newer record replaces the older one, so closing needs no hook. Records are hints, which a reader
 * compares with /proc: a record may be missing or out of date. Only growth of a table takes a lock. Any thread and any
 * signal handler may call while the process is tracked. */
#ifndef MEMSTOW_ORIGINS_H
#define MEMSTOW_ORIGINS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"
#include "preload/stacks/stack.h"

#pragma GCC visibility push(hidden)

/* Notes the caller that has just opened the descriptor. */
void origins_note(int fd, enum snap_origin_kind kind, struct caller caller);

/* At the beginning of a ledger: notes the descriptors that are open already. They were opened by a parent, or by this
 * process before exec. Standard input, output and error are left out: nearly all processes inherit them. */
void origins_note_inherited(void);

/* A new thread, from the moment when its parent thread creates it until its own first step. */
struct origins_thread {
    const void *creator;    /* the parent's thread pointer while the parent creates the thread; afterwards the address
                             * of `created` (origins.c); NULL: the entry is free */
    uint32_t site;          /* the stack that starts the thread */
    void *start, *argument; /* for the hook: what the thread is to run */
};
/* The parent thread calls it before it starts a thread. NULL: nothing will be noted. */
struct origins_thread *origins_expect(struct caller caller);
/* The parent thread calls origins_created when the new thread was started, or origins_forget when it could not be
 * started. The new thread calls origins_arrive before anything else. */
void origins_created(struct origins_thread *thread);
void origins_forget(struct origins_thread *thread);
void origins_arrive(struct origins_thread *thread);

/* The newest record of a descriptor, or of a thread of this process. False: there is none. */
bool origins_of_descriptor(uint32_t fd, struct snap_origin *out);
bool origins_of_thread(uint32_t tid, struct snap_origin *out);

/* Calls visit for each site that an origin refers to. The site of an origin that is noted meanwhile may be missed. The
 * caller makes sure that no thread can note an origin with a hidden site (fold.h). */
void origins_sites(void (*visit)(uint32_t site));

#pragma GCC visibility pop

#endif
