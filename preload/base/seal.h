/* seal.h — whether the kernel may be asked for anything but memory.
 * In: threads on their way into a sandbox (seccomp), where a system call may kill the process, and whether they got
 * there. Out: a flag that the library looks at before it opens a file, starts a thread or waits. Any thread and any
 * signal handler may call. */
#ifndef MEMSTOW_SEAL_H
#define MEMSTOW_SEAL_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Call seal_enter before a call that may lead the thread into a sandbox, and seal_leave after it. In between, other
 * threads can be in the sandbox already (TSYNC). Several threads may be on their way at once. `inside`: the call has
 * led into a sandbox, and the process stays sealed for good. */
void seal_enter(void);
void seal_leave(bool inside);

/* seal_is_set: whether the process is sealed for good, or a thread is on its way into a sandbox. seal_is_for_good:
 * whether the process is sealed for good. */
bool seal_is_set(void);
bool seal_is_for_good(void);
/* Waits until no thread is on its way into a sandbox, but only some milliseconds. It makes no system call. True: the
 * process is not sealed. False: it is sealed for good, or a thread is still on its way. */
bool seal_settles(void);

/* Call it once, at the start. From then on, a forked child begins with no thread on its way into a sandbox. */
void seal_watch_forks(void);

#pragma GCC visibility pop

#endif
