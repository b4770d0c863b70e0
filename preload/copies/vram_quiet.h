/* vram_quiet.h — waits until no work runs in some contexts, for a limited time.
 * In: contexts. Out: 0 if no work runs, or the reason why that is not known. A kernel on a device can run for ever, and
 * nobody can interrupt a call that waits in the driver. So a thread of ours makes this call, and the caller waits for
 * our thread until its own time limit. A second caller waits, up to its own limit, until the first caller has its
 * result. If the first caller gives up, our thread goes on waiting, and all later calls of vram_quiet fail until our
 * thread's wait ends. Any thread may call, outside of hooks. */
#ifndef MEMSTOW_VRAM_QUIET_H
#define MEMSTOW_VRAM_QUIET_H

#include "preload/copies/vram_driver.h"

#pragma GCC visibility push(hidden)

enum {
    VRAM_NOT_QUIET = -1, /* the time is over, or an earlier wait has not returned */
    VRAM_NO_THREAD = -2, /* no thread can be made */
    VRAM_CAPTURE = -3,   /* a stream is in capture */
    VRAM_CONTEXTS = 64,  /* the most contexts in a list; further ones are left out */
};

/* Returns 0, the driver's error, VRAM_NOT_QUIET, VRAM_NO_THREAD or VRAM_CAPTURE. */
int vram_quiet(const struct vram_driver *driver, const cuda_handle *contexts, uint32_t count, uint32_t milliseconds);

#pragma GCC visibility pop

#endif
