/* left_origins.h — tells, as text, which call stacks opened the descriptors and started the threads that are left at
 * the program's end.
 * In: the ledger's records of origins (origins.h), and their stacks. Out: answers for preload/shutdown, which asks
 * through pointers (shutdown_audit.h), because preload/shutdown must not depend on the ledger. An answer takes no lock,
 * and makes no system call except the clock's. */
#ifndef MEMSTOW_LEFT_ORIGINS_H
#define MEMSTOW_LEFT_ORIGINS_H

#include "preload/shutdown/shutdown_audit.h"

#pragma GCC visibility push(hidden)

extern const struct shutdown_ledger left_origins;

#pragma GCC visibility pop

#endif
