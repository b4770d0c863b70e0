/* pools.h — pools of memory, from CUPTI's records. There are records of pools that are made, trimmed or destroyed. And
 * each record of memory from a pool tells how many bytes the pool holds and has handed out.
 * In: records, in any order. Out: the pools and their figures. The table of pools is bounded. Only one thread at a time
 * may call these functions, as with seen.h. */
#ifndef MEMSTOW_CUPTI_POOLS_H
#define MEMSTOW_CUPTI_POOLS_H

#include <stdbool.h>

#include "preload/life/cupti.h"
#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

struct pool {
    uint64_t address;
    uint64_t reserved, used; /* bytes that the pool holds, and how many of them are handed out */
    uint64_t timestamp;      /* the time of these figures */
    uint64_t born, died;     /* when the program made it (0: it did not), and when it was destroyed (0: it exists) */
    uint16_t device;
};

/* Callbacks, which are called while a record is read. Each may be NULL. `came` and `went` are called for pools that
 * the program makes. `figures` is called when a pool that the program did not make has new figures. */
struct pools_told {
    void (*came)(const struct pool *pool);
    void (*went)(const struct pool *pool);
    void (*figures)(const struct pool *pool);
};
void pools_tell(const struct pools_told *to);

/* Reads a record of a pool. False: the table is full. */
bool pools_record(const struct cupti_pool *record);
/* Reads a pool's figures from a record of memory that comes from the pool. Ignores records of other memory. Returns
 * false if the table is full. */
bool pools_memory(const struct cupti_memory *record);

/* Calls visit for each pool, also for pools that are gone. */
void pools_all(void (*visit)(const struct pool *pool, void *context), void *context);
/* For tests: forgets all pools. */
void pools_clear(void);

#pragma GCC visibility pop

#endif
