/* library.h — the CUPTI that belongs to the CUDA of this process.
 * In: what is mapped. Out: its functions. Nothing is linked, and a CUPTI of another generation is not taken. */
#ifndef MEMSTOW_CUPTI_LIBRARY_H
#define MEMSTOW_CUPTI_LIBRARY_H

#include <stdbool.h>

#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

#define F(name, parameters) int(*name) parameters;
struct cupti {
    CUPTI_FUNCTIONS
    CUPTI_FUNCTIONS_V2                                       /* NULL: older than those, */
        int (*cuptiActivityEnableAllocationSource)(uint8_t); /* or than that */
    char path[4096];
};
#undef F

/* False: there is none, or it is incomplete. It stays loaded. */
bool library_open(struct cupti *cupti);

#pragma GCC visibility pop

#endif
