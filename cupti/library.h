/* library.h — finds and loads the CUPTI that belongs to the CUDA of this process.
 * In: the mapped libraries. Out: CUPTI's functions. They are looked up by name, because nothing is
 * linked with CUPTI. If a CUDA runtime is mapped, only a CUPTI of the same major version is taken. */
#ifndef MEMSTOW_CUPTI_LIBRARY_H
#define MEMSTOW_CUPTI_LIBRARY_H

#include <stdbool.h>

#include "cupti/abi.h"

#pragma GCC visibility push(hidden)

#define F(name, parameters) int(*name) parameters;
struct cupti {
    CUPTI_FUNCTIONS
    CUPTI_FUNCTIONS_V2                                       /* NULL: this version of CUPTI lacks the function */
        int (*cuptiActivityEnableAllocationSource)(uint8_t); /* NULL: this version of CUPTI lacks it */
    char path[4096];
};
#undef F

/* Loads CUPTI, which stays loaded, and looks up its functions. Returns false if there is no CUPTI, or if it lacks a
 * function of CUPTI_FUNCTIONS. */
bool library_open(struct cupti *cupti);

#pragma GCC visibility pop

#endif
