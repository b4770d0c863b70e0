/* pools.h — pools of memory as CUPTI's records tell of them: those that are made, trimmed and destroyed, and what each
 * holds and has given out at every allocation from it.
 * In: records, in any order. Out: the pools there are. Bounded; not for several threads at once, as seen.h. */
#ifndef MEMSTOW_CUPTI_POOLS_H
#define MEMSTOW_CUPTI_POOLS_H

#include <stdbool.h>

#include "preload/life/cupti.h"
#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

struct pool {
    uint64_t address;
    uint64_t reserved, used; /* bytes that it holds, and of them given out */
    uint64_t timestamp;      /* of that */
    uint64_t born, died;     /* when it was made (0: not by the program) and destroyed (0: it is there) */
    uint16_t device;
};

/* Each NULL, or called while a record is taken in: a pool of the program's; or figures of one that it has not made, as
 * far as is known by then. */
struct pools_told {
    void (*came)(const struct pool *pool);
    void (*went)(const struct pool *pool);
    void (*figures)(const struct pool *pool);
};
void pools_tell(const struct pools_told *told);

/* False: there is no room for it. */
bool pools_record(const struct cupti_pool *record);
/* Of memory out of a pool; other memory is passed over. */
bool pools_memory(const struct cupti_memory *record);

/* Also those that are gone. */
void pools_all(void (*visit)(const struct pool *pool, void *context), void *context);
void pools_clear(void);

#pragma GCC visibility pop

#endif
