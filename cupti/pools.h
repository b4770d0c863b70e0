/* pools.h — pools of memory, from CUPTI's records: pools that are made, trimmed and destroyed, and what each one holds
 * and has handed out at every allocation.
 * In: records, in any order. Out: the pools that exist. Bounded. One thread at a time, as for seen.h. */
#ifndef MEMSTOW_CUPTI_POOLS_H
#define MEMSTOW_CUPTI_POOLS_H

#include <stdbool.h>

#include "preload/life/cupti.h"
#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

struct pool {
    uint64_t address;
    uint64_t reserved, used; /* bytes that it holds, and the part that was handed out */
    uint64_t timestamp;      /* the time of these figures */
    uint64_t born, died;     /* when it was made (0: not by the program) and destroyed (0: it exists) */
    uint16_t device;
};

/* Callbacks, which are called while a record is read; NULL: none. One is for a pool that the program made, the other
 * for new figures of a pool that it did not make. */
struct pools_told {
    void (*came)(const struct pool *pool);
    void (*went)(const struct pool *pool);
    void (*figures)(const struct pool *pool);
};
void pools_tell(const struct pools_told *to);

/* False: the table is full. */
bool pools_record(const struct cupti_pool *record);
/* For memory from a pool; other memory is ignored. */
bool pools_memory(const struct cupti_memory *record);

/* Includes pools that are gone. */
void pools_all(void (*visit)(const struct pool *pool, void *context), void *context);
/* For tests: there are no pools yet. */
void pools_clear(void);

#pragma GCC visibility pop

#endif
