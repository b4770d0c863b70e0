/* rescue.h — if a device has no memory for a request, moves memory of idle owners off the device, so that the request
 * can be repeated before the program learns of the failure.
 * In: requests that the driver refused, in the hooks of its entries. Out: whether to ask the driver again; the trace
 * has the decisions (reason "rescue"). Any thread may call, whatever locks it holds: each wait here is limited. One
 * rescue runs at a time. With MEMSTOW_CUDA_RESCUE=kept, owners with the policy keep are taken, too, after all others.
 * There is no rescue in these cases:
 * - MEMSTOW_CUDA_RESCUE=0 is set.
 * - The program only probes how much memory there is.
 * - A stream is in capture.
 * - comfy-aimdo is loaded.
 * - The process is in a sandbox.
 * - The thread runs a callback of the driver: every call of the driver fails there. */
#ifndef MEMSTOW_RESCUE_H
#define MEMSTOW_RESCUE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"

#pragma GCC visibility push(hidden)

/* Reads the value of MEMSTOW_CUDA_RESCUE. Returns an error message if the text is unreadable, otherwise NULL. An
 * unreadable setting counts as not set. */
const char *rescue_wish(const char *text);

/* Moves memory of idle owners off devices until `needed` bytes are free, and returns the bytes that it freed. It takes
 * only owners for which `helps` returns true. If `takes_kept` is true, it also takes owners with the policy keep, after
 * all others. NULL until tracking begins; then it points to trigger_rescue (triggers/). */
extern int64_t (*rescue_run)(uint64_t needed, bool takes_kept, bool (*helps)(uint32_t owner));

/* A request for device memory that may need a rescue. Call rescue_begin before the driver is asked for the first
 * time. */
struct rescue {
    uint64_t bytes;
    bool in_pool;
    /* The stream in whose order the memory is requested: the memory comes from the stream's device. NULL: there is no
     * stream, and the memory comes from the thread's device. */
    cuda_handle stream;
    /* is_error: the refusal is an error for the program. It is not an error if the program may only be trying how much
     * memory there is. judged: `is_error` has been determined. */
    bool judged, is_error;
    uint32_t waits; /* how often the request was repeated because others gave memory back */
    uint64_t left;  /* vram_move_left() when the request was made, or at the latest look (others_gave) */
    bool tried;     /* a rescue was tried for the request */
};
struct rescue rescue_begin(uint64_t bytes, bool in_pool);
/* Call it when the driver refused the request. True: ask the driver again, because memory has left a device, or
 * another thread's rescue or move is over. errno may change. */
bool rescue_try(struct rescue *self);
/* Call it when a request was granted after a rescue. It sets the next pause between rescues to the shortest pause. */
void rescue_worked(void);

/* Call it after an owner was declared in use (no longer idle). Waits for a running rescue, because the rescue may
 * have begun while the owner was idle. After the wait, no more of the owner's memory leaves a device. Returns false
 * if the rescue did not end within a minute. */
bool rescue_is_over(void);

#pragma GCC visibility pop

#endif
