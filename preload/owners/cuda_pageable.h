/* cuda_pageable.h — devices that read and write the program's own memory in place, without registration (HMM, ATS).
 * In: the driver's facts about devices, and the contexts in which the program works. Out: whether such a device may
 * use the program's memory now. It makes no context. Call it outside of hooks. */
#ifndef MEMSTOW_CUDA_PAGEABLE_H
#define MEMSTOW_CUDA_PAGEABLE_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

/* Whether a device that uses the program's memory in place may use an owner's memory during a move. False if there is
 * no such device, or no context in which its work could run. Otherwise:
 * - If the owner is not idle, the answer is true.
 * - If the owner is idle, waits until nothing runs in the primary contexts of such devices, nor in contexts that the
 *   program made on any device. The answer is true if something still runs after 5 seconds.
 * - The answer is also true if the function cannot find out whether something runs: a stream is in capture, there are
 *   more than VRAM_CONTEXTS contexts, or the driver answers with an error. */
bool cuda_pageable_uses(bool idle);

#pragma GCC visibility pop

#endif
