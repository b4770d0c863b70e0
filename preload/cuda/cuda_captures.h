/* cuda_captures.h — the streams that are being captured, anywhere in the process: while there are any, the driver must
 * not be asked for much.
 * In: captures that begin and end, streams and contexts that end. Out: whether there are any; none begins while memstow
 * waits for a context as a whole, which would break it. Any thread. */
#ifndef MEMSTOW_CUDA_CAPTURES_H
#define MEMSTOW_CUDA_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_device.h"

#pragma GCC visibility push(hidden)

bool cuda_captures_any(void);
/* Before the driver is asked to wait for all of a context, and after. False: a stream is being captured, and the driver
 * must not be asked. */
bool cuda_captures_hold_off(void);
void cuda_captures_go_on(void);
/* Before the driver is asked to begin a capture. Returns its place in the list, one bit; 0: there was no room. It waits
 * while a thread is between the two calls above, for a second at most: a driver's wait that lasts longer (a kernel does
 * not end) was begun long before the capture, and does not break it. */
uint64_t cuda_captures_begin(cuda_handle stream, const struct cuda_place *place);
/* It has begun, and this is its number (cuda_device_capture). 0: the driver does not say, and it gets one of ours. */
void cuda_captures_began(uint64_t where, uint32_t capture);
void cuda_captures_never_began(uint64_t where);
/* The number of the capture that began on the stream and goes on; not where it was only drawn into another's. 0: none.
 */
uint32_t cuda_captures_find(cuda_handle stream);
/* Before the driver is asked to end a stream's capture, the stream itself, or the context: those that would end with
 * it, one bit each. After: they have. */
uint64_t cuda_captures_of_stream(cuda_handle stream);
uint64_t cuda_captures_of_context(cuda_handle context);
void cuda_captures_ended(uint64_t places);
/* Before their stream is destroyed: nobody finds them by its name; or they are found again, because that failed. */
void cuda_captures_leave(uint64_t places, bool leave);

#pragma GCC visibility pop

#endif
