/* thread.h — the threads that count, by their slots. In: threads, at their first event and at their end. Out: a slot
 * each, with counters in the ledger and a record. It must not fail: a thread without a slot counts in the shared one.
 *
 * A slot is a private struct thread (thread_inside.h), a snap_thread record and counter chunks in the ledger. Slots
 * outlive their threads and are reused, so that counters only ever grow. A thread without a slot (late in its death, a
 * signal handler that interrupts the making of one, no memory) counts in the shared slot, atomically. */
#ifndef MEMSTOW_THREAD_H
#define MEMSTOW_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

struct thread;

/* Static storage of the thread, so that it is there before anything else and needs no call to reach. Never NULL:
 * thread_nobody when the thread has no slot (yet, or any more). */
extern __thread struct thread *thread_self __attribute__((tls_model("initial-exec")));
extern struct thread thread_nobody;

enum { THREAD_SLOTS = 1 << 16 };

/* The caller's slot, made if need be; SNAP_THREAD_SHARED when there is none to be had. */
uint32_t thread_slot(void);

/* Slots are numbered from 0; NULL: this one is just being made. */
uint32_t thread_slots(void);
struct thread *thread_at(uint32_t slot);
struct snap_thread *thread_record(uint32_t slot);
bool thread_has_ended(uint32_t slot); /* its thread; nobody has the slot now */

/* After ledger_begin. `at_end` is called at the end of each thread. */
void thread_begin(void (*at_end)(void *));
/* At the end of the process: notes the names of threads that still run. */
void thread_note_names(void);

#pragma GCC visibility pop

#endif
