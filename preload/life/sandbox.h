/* sandbox.h — the way into a sandbox (seccomp), where a system call may kill the process.
 * In: the hooks pass on the program's calls that lead into a sandbox if they succeed. Out: the process is sealed
 * (seal.h) and memstow's threads in it are stopped; or, if the call fails, everything is as it was. From sandbox_enter
 * on, the library asks the kernel for nothing but memory. If the call leads into the strictest sandbox, the library
 * asks for nothing at all (os_forbid_calls). If the call fails, these limits end. */
#ifndef MEMSTOW_SANDBOX_H
#define MEMSTOW_SANDBOX_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Call sandbox_enter before a system call with these arguments. If it returns true, call sandbox_entered after the
 * system call, with the result, or with -1 for any failure. If it returns false, there is nothing to do, for one of
 * these reasons:
 *
 * - The system call cannot succeed, or leads into no sandbox.
 * - The process is in a sandbox already, and the system call does not lead into the strictest sandbox.
 * - The process is a vfork child. */
bool sandbox_enter(long number, long a, long b, const void *c);
void sandbox_entered(long number, long a, long b, long result);

#pragma GCC visibility pop

#endif
