/* cuda_pageable.h — devices that read and write the program's own memory in place, without registration (HMM, ATS).
 * In: the driver's facts about devices, and the contexts in which the program works. Out: whether such a device may
 * use the program's memory now. It makes no context. Call it outside of hooks. */
#ifndef MEMSTOW_CUDA_PAGEABLE_H
#define MEMSTOW_CUDA_PAGEABLE_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Whether such a device may use an owner's memory while it moves. If there is such a device, and the owner is not idle:
 * true. If the owner is idle, waits until nothing runs in the primary contexts of such devices, nor in contexts that
 * the program made on any device; if something still runs after 5 seconds: true. Also true if that cannot be found out:
 * a stream is in capture, there are more than VRAM_CONTEXTS contexts, or the driver answers with an error. */
bool cuda_pageable_uses(bool idle);

#pragma GCC visibility pop

#endif
