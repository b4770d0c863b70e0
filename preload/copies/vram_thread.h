/* vram_thread.h — a thread of memstow's that calls the driver while the program goes on: in steps of its own, and for
 * threads that cannot call the driver.
 * In: work. Out: the work done. The driver asks its kernel modules through descriptors of the program. A thread with a
 * table of descriptors of its own, such as memstow's worker, does not have them, so its calls of the driver would fail
 * or reach another file. The device thread was made by a thread of the program, and shares the program's table. */
#ifndef MEMSTOW_VRAM_THREAD_H
#define MEMSTOW_VRAM_THREAD_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* The calling thread has descriptors of its own. Set it on such a thread before it calls vram_thread_do. */
extern __thread bool vram_thread_apart __attribute__((tls_model("initial-exec")));

/* Does the work on this thread. If this thread has descriptors of its own, the device thread does the work, and this
 * thread waits for the end. False: nothing was done, because there is no device thread, or it works for another
 * thread. */
bool vram_thread_do(void (*work)(void *context), void *context);

/* vram_thread_begins: call it before the device thread is made. False: the thread must not be made, because the program
 * has begun to end. vram_thread_run: what the device thread does, until is_over returns true or the program begins to
 * end. `step` does a part of the thread's own work, and returns how many milliseconds to wait before the next part;
 * VRAM_THREAD_NOTHING: until vram_thread_wake. vram_thread_wake: makes the thread call is_over again, and look for
 * work. vram_thread_ended: call it when the thread could not be made. */
#define VRAM_THREAD_NOTHING UINT32_MAX
bool vram_thread_begins(void);
void vram_thread_run(bool (*is_over)(void), uint32_t (*step)(void));
void vram_thread_wake(void);
void vram_thread_ended(void);
/* vram_thread_ends_with_program: call it when the driver is loaded; later calls do nothing. It registers an exit
 * handler, which runs before those of the driver. The handler keeps the device thread from beginning more work, and
 * waits for its present work, 5 seconds at most. vram_thread_must_end: whether the caller is the device thread, and the
 * program has begun to end. */
void vram_thread_ends_with_program(void);
bool vram_thread_must_end(void);

#pragma GCC visibility pop

#endif
