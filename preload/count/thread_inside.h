/* thread_inside.h — the inside of a thread's slot. In: the slot of the calling thread. Out: its counters, and the data
 * that other files of count/ keep in it. Only they and the hooks' fast path may look inside (tests/build/layers). */
#ifndef MEMSTOW_THREAD_INSIDE_H
#define MEMSTOW_THREAD_INSIDE_H

#include "preload/count/thread.h"
#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

enum { THREAD_CHUNKS = 1 << 14 /* of SNAP_CHUNK_SITES sites each: two million sites */ };

struct thread {
    /* Host bytes allocated minus freed since they were last added to the total, plus `quantum`: when it leaves
     * [0, limit] it is time. Not atomic to signals: a lost update shifts the running total, never a counter. */
    uint64_t room, limit, quantum;
    /* Where events are counted whose call stack is not recorded; else NULL. Then `nowhere` is not 0, but so much that
     * no seal is the sum of it (header.h). */
    struct snap_counter *here;
    uint64_t nowhere;
    struct snap_counter *always; /* the same, when that holds for every event; else NULL */
    /* While stacks are sampled: a block of less is counted `here`, and its size taken off; one of as much is a sample
     * (sample.h). Else 0. What a signal handler takes off may be forgotten; but as it is loaded and stored once, it
     * never falls below 1. */
    uint64_t until;
    struct stack *stack;   /* stack.h; NULL until it is needed */
    struct tagged *tagged; /* tags.c; the same */
    /* While a hook has a site that it has not counted at yet: the slot (stack.h) of the outermost such hook. */
    uintptr_t pinned;
    uint32_t quiet; /* the last epoch in which it was seen without */
    uint32_t slot;
    uint32_t chunk_limit;            /* chunks[] is empty from here on */
    uint64_t random;                 /* sample.c */
    uint64_t *chunks[THREAD_CHUNKS]; /* words of snap_chunk */
};

/* SNAP_THREAD_SHARED, SNAP_THREAD_MAPPINGS. */
extern struct thread thread_shared, thread_mapped;

/* The calling thread's, with a slot if there is one to be had. */
struct thread *thread_acquire(void);
/* It holds back nothing from now on, and may hold back as much as is allowed now. */
void thread_begin_quantum(struct thread *self);
/* The calling thread has no slot any more: what it had, or NULL. And then, once it was looked at for the last time, the
 * slot is another's. */
struct thread *thread_leave(void);
void thread_give_up(struct thread *self);

#pragma GCC visibility pop

#endif
