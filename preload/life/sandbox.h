/* sandbox.h — the way into a sandbox (seccomp), where a system call may kill.
 * In: calls that lead into a sandbox if they succeed. Out: the process is sealed (seal.h) and has no thread of ours;
 * or, if the call fails, everything is as it was. It must ask nothing of the kernel between the call and its
 * failure. */
#ifndef MEMSTOW_SANDBOX_H
#define MEMSTOW_SANDBOX_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Call it before a system call with these arguments. True: call sandbox_entered with the result of the call, or with -1
 * for any failure. False: the call leads into no sandbox, or cannot succeed: it only probes what the kernel knows. */
bool sandbox_enter(long number, long a, long b, const void *c);
void sandbox_entered(long number, long flags, long result);

#pragma GCC visibility pop

#endif
