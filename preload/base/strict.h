/* strict.h — the strictest sandbox (SECCOMP_MODE_STRICT). A thread in it is killed by nearly all system calls, and by
 * libc's clock, which reads the processor's counter.
 * In: threads on their way into it. Out: os_call fails with -EPERM, and the time stands still, for all threads. So the
 * library goes on with the memory that it has, and counts what it cannot note. Any thread may call. */
#ifndef MEMSTOW_STRICT_H
#define MEMSTOW_STRICT_H

#pragma GCC visibility push(hidden)

/* strict_enter: call it just before the call that leads into the sandbox. strict_leave: that call has failed. */
void strict_enter(void);
void strict_leave(void);

#pragma GCC visibility pop

#endif
