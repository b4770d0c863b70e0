/* cuda_pageable.h — devices that read and write the program's own memory where it lies, without being told where that
 * is (HMM, ATS). In: what the driver says of the devices that the program uses. Out: whether there is such a one, and
 * whether nothing runs on any. It makes no context. Outside of hooks. */
#ifndef MEMSTOW_CUDA_PAGEABLE_H
#define MEMSTOW_CUDA_PAGEABLE_H

#include <stdbool.h>

#pragma GCC visibility push(hidden)

bool cuda_pageable_any(void);
/* Waits until nothing runs in the primary contexts of such devices, for 5 seconds at most. False: something does still,
 * or it cannot be told, as while a stream is being captured. */
bool cuda_pageable_quiet(void);

#pragma GCC visibility pop

#endif
