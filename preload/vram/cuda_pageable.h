/* cuda_pageable.h — devices that read and write the program's own memory in place, without registration (HMM, ATS). In:
 * the driver's facts about the devices, and the contexts that the program works in. Out: whether there is such a device
 * in use, and whether nothing runs on any. It makes no context. Outside of hooks. */
#ifndef MEMSTOW_CUDA_PAGEABLE_H
#define MEMSTOW_CUDA_PAGEABLE_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

bool cuda_pageable_any(void);
/* Waits until nothing runs in the primary contexts of such devices, and in those that the program made on any, for 5
 * seconds at most. False: something does still, or it cannot be told, as while a stream is being captured, or where
 * there were more than VRAM_CONTEXTS. */
bool cuda_pageable_quiet(void);

#pragma GCC visibility pop

#endif
