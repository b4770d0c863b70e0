/* origins.h — which call stack opened a descriptor or started a thread, for who looks at what is left of the process.
 * In: calls of the program that succeeded. Out: a record each in the ledger (snap_birth): that of a descriptor by its
 * number, that of a thread by its slot, so that the newer one takes the older one's place, and closing needs no hook.
 * A hint, which a reader compares with /proc: what cannot be noted is not. No lock but to make room; any thread, any
 * signal handler, while the process is tracked. */
#ifndef MEMSTOW_ORIGINS_H
#define MEMSTOW_ORIGINS_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"
#include "preload/stacks/stack.h"

#pragma GCC visibility push(hidden)

/* The descriptor is there since just now. */
void origins_note(int fd, enum snap_birth_kind kind, struct caller caller);

/* At the beginning of a ledger: what is there by now was opened before, by a parent or by who was this process before
 * exec. Not standard input, output and error, which nearly all processes inherit. */
void origins_note_inherited(void);

/* A thread that is about to be started, between its parent and itself. */
struct origins_thread {
    uint32_t taken, site;
    void *start, *argument; /* of who makes the hook: what it is to run */
};
/* By the parent. NULL: nothing will be noted. */
struct origins_thread *origins_expect(struct caller caller);
/* By the parent, when no thread came of it; by the thread itself, first of all. */
void origins_forget(struct origins_thread *thread);
void origins_arrive(struct origins_thread *thread);

/* What was noted last of a descriptor, or of a thread of this process, by its id. False: nothing. */
bool origins_of_descriptor(uint32_t fd, struct snap_birth *out);
bool origins_of_thread(uint32_t tid, struct snap_birth *out);

/* The sites that are in use here. The caller sees to it that nobody is about to use another one (fold.h). */
void origins_sites(void (*visit)(uint32_t site));

#pragma GCC visibility pop

#endif
