/* cuda_oom.h — what memstow does when a device has no memory for a request.
 * In: requests that the driver refused. Out: the ledger's note of the newest refusal; and, if the refusal is probably
 * an error for the program, a snapshot beside the ledger's file (FILE.oom1.mst and so on). The snapshot shows which
 * owners had the device's memory. */
#ifndef MEMSTOW_CUDA_OOM_H
#define MEMSTOW_CUDA_OOM_H

#include <stdint.h>

#include "preload/cuda/cuda_device.h"
#include "preload/shared/snapshot.h"

#pragma GCC visibility push(hidden)

void cuda_oom_refused(const struct cuda_target *target, enum snap_cuda_kind kind, uint64_t bytes);

#pragma GCC visibility pop

#endif
