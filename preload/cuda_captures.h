/* cuda_captures.h — the streams that are being captured, anywhere in the process: while there are any, the driver must
 * not be asked for much.
 * In: captures that begin and end, streams and contexts that end. Out: whether there are any. Any thread. */
#ifndef MEMSTOW_CUDA_CAPTURES_H
#define MEMSTOW_CUDA_CAPTURES_H

#include <stdbool.h>
#include <stdint.h>

#include "cuda_device.h"

#pragma GCC visibility push(hidden)

bool cuda_captures_any(void);
void cuda_captures_begin(cuda_handle stream, const struct cuda_place *place);
/* One capture of the stream is over; the stream itself is; the context (NULL: all of the device). */
void cuda_captures_end(cuda_handle stream);
void cuda_captures_end_stream(cuda_handle stream);
void cuda_captures_end_context(cuda_handle context, uint32_t device);

/* In a forked child. */
void cuda_captures_abandon(void);

#pragma GCC visibility pop

#endif
