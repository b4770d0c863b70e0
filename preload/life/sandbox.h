/* sandbox.h — the way into a sandbox (seccomp), where a system call may kill the process.
 * In: the program's calls that lead into a sandbox if they succeed, from the hooks. Out: the process is sealed (seal.h)
 * and memstow's threads in it are stopped; or, if the call fails, everything is as it was. From sandbox_enter on, the
 * library asks the kernel for nothing but memory, until the call fails; in the strictest sandbox for nothing at all
 * (os_forbid_calls). */
#ifndef MEMSTOW_SANDBOX_H
#define MEMSTOW_SANDBOX_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Call sandbox_enter before a system call with these arguments. True: after the call, call sandbox_entered with the
 * result, or with -1 for any failure. False: there is nothing to do, for one of these reasons: the call cannot succeed;
 * it leads into no sandbox; the process is in a sandbox already, and the call does not lead into the strictest sandbox;
 * the process is a vfork child. */
bool sandbox_enter(long number, long a, long b, const void *c);
void sandbox_entered(long number, long a, long b, long result);

#pragma GCC visibility pop

#endif
