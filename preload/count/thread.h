/* thread.h — a slot for each thread that allocates or frees memory.
 * In: threads, at their first event and at their end. Out: a slot for each, with counters and a record in the ledger.
 *
 * A slot is a private struct thread (thread_inside.h), a snap_thread record, and counter chunks in the ledger. Slots
 * outlive their threads and are used again, so counters only grow. A thread has no slot late in its end, in a signal
 * handler that interrupts the making of the slot, or when there is no memory. It then counts in the shared slot,
 * atomically. */
#ifndef MEMSTOW_THREAD_H
#define MEMSTOW_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

struct thread;

/* Points to the calling thread's slot, or to thread_nobody while the thread has no slot. Never NULL. The pointer is in
 * static thread-local storage: it exists from the start of the thread, and no call is needed to reach it. */
extern __thread struct thread *thread_self __attribute__((tls_model("initial-exec")));
extern struct thread thread_nobody;

enum { THREAD_SLOTS = 1 << 16 };

/* The caller's slot, which is made on the first call. SNAP_THREAD_SHARED: there is no slot for the caller. */
uint32_t thread_slot(void);

/* The number of slots; they are numbered from 0. */
uint32_t thread_slots(void);
/* A slot and its record. NULL: the slot is being made. */
struct thread *thread_at(uint32_t slot);
struct snap_thread *thread_record(uint32_t slot);
bool thread_has_ended(uint32_t slot); /* the thread of the slot has ended, and nobody has the slot now */

/* Call it after ledger_begin. `at_end` is called when a thread that has a slot ends, unless no pthread key can be
 * used for that: see make_end_key in thread.c. */
void thread_begin(void (*at_end)(void *));
/* At the end of the process: notes the names of threads that still run. */
void thread_note_names(void);

#pragma GCC visibility pop

#endif
