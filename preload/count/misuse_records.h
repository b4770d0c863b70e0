/* misuse_records.h — the ledger's records of misused memory.
 * In: the facts about one misuse. Out: a record in the ledger; the first SNAP_MISUSES of a process are kept. Any thread
 * may call. A call waits for a lock no longer than lock_wait does, and must not call the program's allocator. */
#ifndef MEMSTOW_MISUSE_RECORDS_H
#define MEMSTOW_MISUSE_RECORDS_H

#include <stdint.h>

#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

/* Takes the next number for a record. Records with numbers from SNAP_MISUSES on are dropped. */
uint32_t misuse_records_next(void);
void misuse_records_write(uint32_t number, const struct snap_misuse *what);

#pragma GCC visibility pop

#endif
