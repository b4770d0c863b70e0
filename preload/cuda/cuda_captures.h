/* cuda_captures.h — the streams in capture (CUDA records their work as a graph), in the whole process. While there are
 * any, the driver must not be asked for most things.
 * In: captures that begin and end, streams and contexts that end. Out: whether there is a capture. While memstow waits
 * for all work of a context, the beginning of a capture is delayed, because the driver's wait could break the capture.
 * Any thread may call. */
#ifndef MEMSTOW_CUDA_CAPTURES_H
#define MEMSTOW_CUDA_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_device.h"

#pragma GCC visibility push(hidden)

/* Whether any stream is in capture. */
bool cuda_captures_any(void);
/* hold_off: call it before the driver waits for all work of a context. False: a stream is in capture, and the driver
 * must not be asked. go_on: call it after the wait, if hold_off returned true. */
bool cuda_captures_hold_off(void);
void cuda_captures_go_on(void);
/* Call it before the driver begins a capture. Returns the capture's slot in the list, as one bit; 0: the list is full,
 * or its lock stayed taken. While another thread is between hold_off and go_on, this function waits, but no longer than
 * a second. A wait of the driver that takes longer, because a kernel does not end, began long before the capture. Such
 * a wait does not break the capture. */
uint64_t cuda_captures_begin(cuda_handle stream, const struct cuda_target *target);
/* began: the capture has begun with this number (cuda_device_capture); 0: the driver does not tell, and the capture
 * gets a number of ours. never_began: the call failed. */
void cuda_captures_began(uint64_t where, uint32_t number);
void cuda_captures_never_began(uint64_t where);
/* The number of the capture that began on the stream and goes on. If an event drew the stream into a capture of another
 * stream, that capture does not count. 0: there is none. */
uint32_t cuda_captures_find(cuda_handle stream);
/* of_stream, of_context: call them before the driver ends a stream's capture, the stream or the context. They return
 * the slots of the captures that would end, one bit each. ended: these captures have ended. */
uint64_t cuda_captures_of_stream(cuda_handle stream);
uint64_t cuda_captures_of_context(cuda_handle context);
void cuda_captures_ended(uint64_t slots);
/* leave true: the stream of these captures is about to be destroyed, so a look-up by the stream no longer finds them.
 * leave false: the destruction failed, and a look-up finds them again. */
void cuda_captures_leave(uint64_t slots, bool leave);

#pragma GCC visibility pop

#endif
