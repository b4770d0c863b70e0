/* library.h — the CUPTI that belongs to the CUDA of this process.
 * In: the mapped libraries. Out: its functions. It links nothing, and takes no CUPTI of another generation. */
#ifndef MEMSTOW_CUPTI_LIBRARY_H
#define MEMSTOW_CUPTI_LIBRARY_H

#include <stdbool.h>

#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

#define F(name, parameters) int(*name) parameters;
struct cupti {
    CUPTI_FUNCTIONS
    CUPTI_FUNCTIONS_V2                                       /* NULL: this version lacks them */
        int (*cuptiActivityEnableAllocationSource)(uint8_t); /* or this */
    char path[4096];
};
#undef F

/* False: there is none, or it is incomplete. The library stays loaded. */
bool library_open(struct cupti *cupti);

#pragma GCC visibility pop

#endif
