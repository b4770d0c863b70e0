/* vram_quiet.h — waits until nothing runs on a device any more, for a limited time.
 * In: contexts. Out: 0; the driver's error; VRAM_NOT_QUIET; or VRAM_CAPTURE: a stream is in capture. A kernel may never
 * end, and nobody can interrupt the driver's wait. So a thread does the waiting, and goes on after the caller has given
 * up. Until it has returned, every other wait fails: VRAM_NOT_QUIET. Any thread, outside of hooks. A second caller
 * waits for the first, within its own time. */
#ifndef MEMSTOW_VRAM_QUIET_H
#define MEMSTOW_VRAM_QUIET_H

#include "preload/vram/vram_driver.h"

#pragma GCC visibility push(hidden)

enum { VRAM_NOT_QUIET = -1, VRAM_NO_THREAD = -2, VRAM_CAPTURE = -3, VRAM_CONTEXTS = 64 };

int vram_quiet(const struct vram_driver *driver, const cuda_handle *contexts, uint32_t count, uint32_t milliseconds);

#pragma GCC visibility pop

#endif
