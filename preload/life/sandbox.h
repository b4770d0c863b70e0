/* sandbox.h — the way into a sandbox (seccomp), where a system call may kill.
 * In: calls that lead there if they succeed. Out: a sealed ledger, and no thread of ours; or, if the call fails,
 * everything as it was. It must ask nothing of the kernel between the call and its failure. */
#ifndef MEMSTOW_SANDBOX_H
#define MEMSTOW_SANDBOX_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Call it before a system call with these arguments. False: it leads into no sandbox, or cannot succeed, as a probe
 * that asks what the kernel knows. True: call sandbox_entered with its result, -1 for any failure. */
bool sandbox_enter(long number, long a, long b, const void *c);
void sandbox_entered(long number, long flags, long result);

#pragma GCC visibility pop

#endif
