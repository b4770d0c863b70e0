/* cuda_capture.h — calls that begin or end the capture of a stream.
 * In: such a call, before and after. Out: the list of captures (cuda_captures.h). Memory of the capture's nodes belongs
 * to the graph that the capture becomes. If it becomes none, that memory ends with the capture. */
#ifndef MEMSTOW_CUDA_CAPTURE_H
#define MEMSTOW_CUDA_CAPTURE_H

#include "preload/events/cuda_events.h"

#pragma GCC visibility push(hidden)

/* Call cuda_capture_changes before the driver's call, and cuda_capture_went after it, with its result. Call
 * cuda_capture_becomes when the capture that ended has become this graph. */
void cuda_capture_changes(struct cuda_call *call, enum cuda_capture what, cuda_handle stream);
void cuda_capture_went(const struct cuda_call *call, int result);
void cuda_capture_becomes(const struct cuda_call *call, cuda_handle graph);

#pragma GCC visibility pop

#endif
