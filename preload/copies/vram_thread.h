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

/* True on a thread that has descriptors of its own. Such a thread must set it before it calls vram_thread_do. */
extern __thread bool vram_thread_apart __attribute__((tls_model("initial-exec")));

/* Calls work(context). If this thread has descriptors of its own, the device thread makes the call, and this thread
 * waits until it has returned. Otherwise this thread makes the call. Returns false if no call was made, because
 * there is no device thread, or it works for another thread. */
bool vram_thread_do(void (*work)(void *context), void *context);

/* Call vram_thread_begins before the device thread is made. If it returns false, the thread must not be made,
 * because the program has begun to end.
 * The device thread calls vram_thread_run, which returns when is_over returns true or the program begins to end. `step`
 * does a part of the thread's own work, and returns how many milliseconds to wait before the next part, or
 * VRAM_THREAD_NOTHING to wait until vram_thread_wake is called.
 * vram_thread_wake makes the thread call is_over again, and look for work.
 * Call vram_thread_ended if the thread could not be made. */
#define VRAM_THREAD_NOTHING UINT32_MAX
bool vram_thread_begins(void);
void vram_thread_run(bool (*is_over)(void), uint32_t (*step)(void));
void vram_thread_wake(void);
void vram_thread_ended(void);
/* Call vram_thread_ends_with_program when the driver is loaded. The first call registers an exit handler, which runs
 * before those of the driver; later calls do nothing. The handler keeps the device thread from beginning more work,
 * and waits at most 5 seconds for the end of its present work.
 * vram_thread_must_end returns whether the caller is the device thread and the program has begun to end. */
void vram_thread_ends_with_program(void);
bool vram_thread_must_end(void);

#pragma GCC visibility pop

#endif
