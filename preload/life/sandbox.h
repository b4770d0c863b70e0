/* sandbox.h — the way into a sandbox (seccomp), in which what the kernel is asked may kill.
 * In: calls that lead there if they succeed. Out: a sealed ledger, and no thread of ours; or, where the call fails, all
 * as it was. It must ask nothing of the kernel between the call and its failure. */
#ifndef MEMSTOW_SANDBOX_H
#define MEMSTOW_SANDBOX_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* About to make a system call with these arguments. False: it leads into no sandbox, or cannot succeed, as a probe that
 * asks what the kernel knows. True: sandbox_entered is to be called with its result, -1 for any failure. */
bool sandbox_enter(long number, long a, long b, const void *c);
void sandbox_entered(long number, long flags, long result);

#pragma GCC visibility pop

#endif
