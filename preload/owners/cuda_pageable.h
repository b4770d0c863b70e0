/* cuda_pageable.h — devices that read and write the program's own memory in place, without registration (HMM, ATS).
 * In: the driver's facts about devices, and the contexts in which the program works. Out: whether the program uses such
 * a device, and whether work runs on one. It makes no context. Call it outside of hooks. */
#ifndef MEMSTOW_CUDA_PAGEABLE_H
#define MEMSTOW_CUDA_PAGEABLE_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Whether the process uses a device that reads the host's pageable memory. */
bool cuda_pageable_any(void);
/* Waits, 5 seconds at most, until nothing runs in the primary contexts of such devices, nor in contexts that the
 * program made on any device. False: something still runs; or that cannot be found out, because a stream is in capture
 * or there are more than VRAM_CONTEXTS contexts. */
bool cuda_pageable_quiet(void);

#pragma GCC visibility pop

#endif
