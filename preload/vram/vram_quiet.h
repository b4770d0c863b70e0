/* vram_quiet.h — waits until nothing runs on a device any more, for a limited time.
 * In: contexts. Out: 0: nothing runs; or why that is not known. A kernel may never end, and nobody can interrupt the
 * driver's wait. So a thread does the waiting, and goes on after the caller has given up. Until it has returned, every
 * other wait fails. Any thread, outside of hooks. A second caller waits for the first, within its own time. */
#ifndef MEMSTOW_VRAM_QUIET_H
#define MEMSTOW_VRAM_QUIET_H

#include "preload/copies/vram_driver.h"

#pragma GCC visibility push(hidden)

enum {
    VRAM_NOT_QUIET = -1, /* the time is over, or an earlier wait has not returned */
    VRAM_NO_THREAD = -2, /* no thread can be made */
    VRAM_CAPTURE = -3,   /* a stream is in capture */
    VRAM_CONTEXTS = 64,  /* contexts after these are left out */
};

/* 0, the driver's error, or one of the first three above. */
int vram_quiet(const struct vram_driver *driver, const cuda_handle *contexts, uint32_t count, uint32_t milliseconds);

#pragma GCC visibility pop

#endif
