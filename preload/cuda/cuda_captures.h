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
/* Call cuda_captures_hold_off before a call that makes the driver wait for all work of a context. If it returns false,
 * a stream is in capture, so leave out the call of the driver. If it returns true, call cuda_captures_go_on after the
 * call of the driver. */
bool cuda_captures_hold_off(void);
void cuda_captures_go_on(void);
/* Call it before the driver begins a capture. Returns the capture's slot in the list, as one bit, or 0 if the list is
 * full or its lock stayed taken. While other threads are between cuda_captures_hold_off and cuda_captures_go_on, the
 * function waits for them: a call of the driver that they make after the capture has begun could break the capture. One
 * second after the latest cuda_captures_hold_off, it no longer waits: by that time the call has begun, and a call that
 * began before the capture does not break it. */
uint64_t cuda_captures_begin(cuda_handle stream, const struct cuda_target *target);
/* Call one of these two with the result of cuda_captures_begin: cuda_captures_began if the driver has begun the
 * capture, or cuda_captures_never_began if the driver could not begin it. `number` is the result of
 * cuda_device_capture. If it is 0, because the driver does not tell the number, the capture gets a number of ours. */
void cuda_captures_began(uint64_t where, uint32_t number);
void cuda_captures_never_began(uint64_t where);
/* Returns the number of the capture that began on this stream and goes on, or 0 if there is no such capture. A stream
 * can also join the capture of another stream, by waiting for an event of that stream. Such a capture does not count
 * here. */
uint32_t cuda_captures_find(cuda_handle stream);
/* Call cuda_captures_of_stream before the driver ends a stream or its capture, and cuda_captures_of_context before the
 * driver ends a context. They return the slots of the captures that would end, one bit each. When the driver has ended
 * these captures, call cuda_captures_ended with the slots. */
uint64_t cuda_captures_of_stream(cuda_handle stream);
uint64_t cuda_captures_of_context(cuda_handle context);
void cuda_captures_ended(uint64_t slots);
/* Call it with `leave` true before the driver destroys the stream of these captures: from then on, no look-up by a
 * stream finds them. If the driver fails to destroy the stream, call it with `leave` false, so that look-ups find them
 * again. */
void cuda_captures_leave(uint64_t slots, bool leave);

#pragma GCC visibility pop

#endif
