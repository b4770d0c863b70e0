/* vram_quiet.h — waits until nothing runs on a device any more, for so long.
 * In: contexts. Out: 0, or the driver's error, or VRAM_NOT_QUIET, or VRAM_CAPTURE: a stream is being captured. A kernel
 * may never end, and the driver's wait cannot be given up: it is left to a thread, which goes on waiting after the
 * caller has given up. Until it has come back nothing is waited for again: VRAM_NOT_QUIET. Any thread, outside of
 * hooks; a second caller waits for the first, within its own time. */
#ifndef MEMSTOW_VRAM_QUIET_H
#define MEMSTOW_VRAM_QUIET_H

#include "preload/vram/vram_driver.h"

#pragma GCC visibility push(hidden)

enum { VRAM_NOT_QUIET = -1, VRAM_NO_THREAD = -2, VRAM_CAPTURE = -3, VRAM_CONTEXTS = 64 };

int vram_quiet(const struct vram_driver *driver, const cuda_handle *contexts, uint32_t count, uint32_t milliseconds);

#pragma GCC visibility pop

#endif
