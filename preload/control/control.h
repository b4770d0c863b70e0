/* control.h — the control socket of a process, which `memstow stow PID …` talks to.
 * In: the opening of the first owner. Out: the control thread, which listens (endpoint.h), passes requests on
 * (requests.h), and reports on them (wire.h); a worker thread, once there is work that the program does not do itself;
 * and the device thread (vram_thread.h), if device memory may move. A process without owners has none of these threads.
 * A forked child has none until its first owner.
 *
 * The control thread and the worker share a descriptor table that nobody else has: the program cannot close or find
 * their descriptors, and its children do not inherit them. The device thread has the program's descriptors. All three
 * threads block the program's signals (block_signals), and use neither the program's allocator nor its standard
 * output. */
#ifndef MEMSTOW_CONTROL_H
#define MEMSTOW_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Starts the control thread, on the first call. If no thread can be made, the ledger gets a note with the reason, and
 * the next call tries again. Any thread may call it, but must hold no lock. It keeps errno. */
void control_begin(void);

/* How many seconds control_stop may wait when its caller has time. */
enum { CONTROL_PATIENCE = 100 };
/* Ends the threads and waits until they have ended, but not longer than `seconds`. It can take long, because a move of
 * memory has to stop first, and the disk may hang. True: the threads were running and have ended. */
bool control_stop(uint32_t seconds);
/* Starts the threads that control_stop has ended. Call it on the thread that called control_stop. */
void control_resume(void);
/* Call it when a thread was on its way into a sandbox and did not get there. Starts the control thread if control_begin
 * has put off its start. */
void control_retry(void);

/* Waits for the threads that control_stop gave up on. It makes no system call, because the caller may be in a sandbox.
 * So it spins a fixed number of times, and then gives up. That takes from ten seconds to some minutes, depending on the
 * processor. One caller at a time. */
void control_await(void);

/* Call it when the process is about to end. It removes the socket. Threads may still be at work. */
void control_end(void);

#pragma GCC visibility pop

#endif
