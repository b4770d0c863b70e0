/* serve_settings.h — the settings for device memory that memstow serves (makes in place of the driver, so that it can
 * move).
 * In: environment variables. Out: the settings as numbers. They do not change while the program runs.
 *
 * - MEMSTOW_CUDA_MOVES=SIZE: allocations of SIZE and more in a model's scope are served.
 * - MEMSTOW_CUDA_HOST=SIZE: how much host memory may hold content that was moved off devices.
 * - MEMSTOW_CUDA_PINNED=SIZE: how much of that host memory may be pinned.
 * - MEMSTOW_CUDA_DISK=SIZE: how much more of such content may go to files.
 * - MEMSTOW_CUDA_KEEP=SIZE: how much of that host memory may keep content that has come back.
 * - MEMSTOW_CUDA_VERIFY=1: each copy is compared with its original.
 * - MEMSTOW_CUDA_IPC=1: memory of cudaMalloc is not served, so that it can be exported.
 * - MEMSTOW_CUDA_AHEAD=0: memory is pinned only when a move needs it (vram_ahead_wanted).
 * - MEMSTOW_CUDA_TOTAL=1: the total that cudaMemGetInfo returns is the device's, without content that was moved off it.
 * - MEMSTOW_CUDA_SPARE=SIZE: how much freed memory may be kept (vram_spare_most).
 * - MEMSTOW_CUDA_RESCUE: see rescue.h. */
#ifndef MEMSTOW_SERVE_SETTINGS_H
#define MEMSTOW_SERVE_SETTINGS_H

#include "preload/vram/vram_backup.h"

#pragma GCC visibility push(hidden)

/* MEMSTOW_CUDA_MOVES is set. */
extern bool serve_wanted;

extern struct serve_settings {
    uint64_t threshold; /* SIZE of MEMSTOW_CUDA_MOVES in bytes, but at least a granule */
    struct vram_limits limits;
    bool verifies, exports, keeps_total;
} serve_settings;

/* An error message about a setting that is unreadable; NULL: all settings can be read. */
const char *serve_settings_unreadable(void);

#pragma GCC visibility pop

#endif
