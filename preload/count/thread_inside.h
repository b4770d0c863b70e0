/* thread_inside.h — the inside of a thread's slot.
 * In: the slot of the calling thread. Out: its counters, and data of other files in count/. Only those files and the
 * hooks' fast path may look inside (tests/build/layers). */
#ifndef MEMSTOW_THREAD_INSIDE_H
#define MEMSTOW_THREAD_INSIDE_H

#include "preload/count/thread.h"
#include "preload/shared/os.h"

#pragma GCC visibility push(hidden)

enum { THREAD_CHUNKS = 1 << 14 /* of SNAP_CHUNK_SITES sites each: two million sites */ };

struct thread {
    /* drift: host bytes allocated minus freed since the last flush, plus `quantum`. When it leaves [0, limit], a flush
     * is due, which adds these bytes to the running total. If a signal handler interrupts an update, bytes may be lost:
     * the running total is wrong then, but never a counter. */
    uint64_t drift, limit, quantum;
    /* here: the counter for events without a recorded call stack; NULL: the stack of every event is recorded.
     * nowhere: the fast path of free adds it to the sum that must equal the seal of the block (header.h). If `here` is
     * NULL, `nowhere` is so large that the sum equals no seal, so the fast path is not taken. Otherwise it is 0. */
    struct snap_counter *here;
    uint64_t nowhere;
    struct snap_counter *always; /* as `here` if no event has a recorded stack; else NULL */
    /* The countdown to the next sample (sample.h), in bytes; 0: stacks are not sampled. A block smaller than the
     * countdown is counted `here`, and its size is subtracted; any other block is a sample. A signal handler's
     * subtraction may be lost. For each block the value is loaded once and stored once, so it never falls below 1. */
    uint64_t until;
    struct stack *stack;   /* stack.h; NULL until it is needed */
    struct tagged *tagged; /* tags.c; NULL until it is needed */
    /* The slot (stack.h) of the outermost hook that holds a site at which it has not counted yet. 0: none. */
    uintptr_t pinned;
    uint32_t quiet; /* the last epoch (pin.h) in which the thread was seen without a pin */
    uint32_t slot;
    uint32_t next_wide;              /* the next wide counter of the slot's run; a multiple of WIDE_RUN: none */
    uint32_t chunk_limit;            /* chunks[] is empty from this index on */
    uint64_t random;                 /* the state of the random numbers (sample.c) */
    uint64_t *chunks[THREAD_CHUNKS]; /* by chunk of sites: the words of its snap_chunk; NULL: none yet */
};

/* The slots SNAP_THREAD_SHARED and SNAP_THREAD_MAPPINGS, which belong to no thread. */
extern struct thread thread_shared, thread_mapped;

/* The slot of the calling thread, which is made if it does not exist. */
struct thread *thread_acquire(void);
/* Makes drift and quantum begin anew, with the quantum that is allowed at present. Bytes in `drift` that were not added
 * to the running total are forgotten. */
void thread_begin_quantum(struct thread *self);
/* thread_leave takes the slot from the calling thread and returns the slot, or NULL if the thread had none.
 * thread_give_up lets another thread have the slot. Call thread_give_up when no thread reads the slot any more. */
struct thread *thread_leave(void);
void thread_give_up(struct thread *self);

#pragma GCC visibility pop

#endif
