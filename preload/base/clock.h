/* clock.h — the time in threads that may not read the processor's counter.
 * In: calls by which the program forbids the counter. Out: os_clock and os_ticks without the counter, for the whole
 * process. libc's clock_gettime reads the counter, so it would kill such a thread. Any thread may call. */
#ifndef MEMSTOW_CLOCK_H
#define MEMSTOW_CLOCK_H

#pragma GCC visibility push(hidden)

/* Before a thread forbids the counter to itself (PR_SET_TSC): from now on the kernel is asked for the time. */
void clock_ask_kernel(void);

/* Before a thread enters the strictest sandbox, which forbids the counter and the system call: the time stands still.
 * clock_go_on: the thread did not get there. */
void clock_stop(void);
void clock_go_on(void);

#pragma GCC visibility pop

#endif
