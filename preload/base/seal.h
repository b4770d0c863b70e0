/* seal.h — whether the kernel may be asked for anything but memory.
 * In: that the program goes into a sandbox (seccomp), where a system call may kill it; or that it did not get there. Out:
 * one flag, which every room looks at before it opens a file, starts a thread or waits. Any thread. */
#ifndef MEMSTOW_SEAL_H
#define MEMSTOW_SEAL_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

void seal_set(void);
/* The program is not in a sandbox after all. */
void seal_lift(void);
bool seal_is_set(void);

#pragma GCC visibility pop

#endif
