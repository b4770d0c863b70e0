/* vram_rescue.h — when a device has no memory for a request, idle owners' memory leaves it, and the request is made
 * once more, before the program hears of the failure. In: requests that the driver refused, in the hooks of its
 * entries. Out: whether to ask again; the trace has the decisions (reason "rescue"). There is none for a program that
 * only tries how much there is (cuda_oom.h), while a stream is being captured, and in a callback of the driver's, in
 * which it refuses everything for another reason. Any thread, whatever locks its callers hold: each wait here ends by
 * itself, and there is one rescue at a time. MEMSTOW_CUDA_RESCUE=0: there is none; =kept: kept owners are taken, too,
 * after all others. */
#ifndef MEMSTOW_VRAM_RESCUE_H
#define MEMSTOW_VRAM_RESCUE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"

#pragma GCC visibility push(hidden)

/* NULL, or, of a text that cannot be read and counts as not set, a sentence. */
const char *vram_rescue_wish(const char *text);

/* Moves memory of idle owners out of devices until so much is free: of those for which `helps` is true, and, if
 * `takes_kept`, of kept owners, after all others. Returns the bytes that it gave. Set at the start, because triggers/
 * decides. */
extern int64_t (*vram_rescue_run)(uint64_t needed, bool takes_kept, bool (*helps)(uint32_t owner));

/* A request, from before it is made for the first time. */
struct vram_rescue {
    uint64_t bytes;
    bool in_pool;
    cuda_handle stream; /* in whose order, and of whose device's memory; NULL: of the thread's device */
    bool judged, is_error;
    uint32_t waits;
    uint64_t left; /* blocks that had left their device when it was made */
    bool tried;    /* a rescue was made for it */
};
struct vram_rescue vram_rescue_begin(uint64_t bytes, bool in_pool);
/* It was refused: true, ask again. errno may change. */
bool vram_rescue(struct vram_rescue *self);
/* It was granted after one was tried. */
void vram_rescue_worked(void);

/* An owner has just been declared in use. Waits for a rescue that is under way and may have seen it idle; what that has
 * taken is out then. False: it did not end within a minute. */
bool vram_rescue_is_over(void);

#pragma GCC visibility pop

#endif
