/* origin.h — what the ledger knows of the descriptors and threads that are left of a program, in words.
 * In: births, and the stacks that they are of. Out: the answers that the shutdown's room asks for through a pointer
 * (shutdown_audit.h), because it needs nothing of the ledger itself. No lock, no system call but the clock's. */
#ifndef MEMSTOW_ORIGIN_H
#define MEMSTOW_ORIGIN_H

#include "preload/shutdown/shutdown_audit.h"

#pragma GCC visibility push(hidden)

extern const struct shutdown_ledger origin_ledger;

#pragma GCC visibility pop

#endif
