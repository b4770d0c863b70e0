/* cuda_device.h — asks the driver, where that does no harm: for the device and context of a thread, whether a stream is
 * being captured, how much memory there is. In: threads that have just come back from a call of CUDA. Out: figures. It
 * makes no context, initialises nothing, and asks nothing that the driver refuses while a stream is being captured. */
#ifndef MEMSTOW_CUDA_DEVICE_H
#define MEMSTOW_CUDA_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"

#pragma GCC visibility push(hidden)

struct cuda_place {
    cuda_handle context; /* NULL: none */
    uint32_t device;     /* 0 when it cannot be told */
};

/* The thread's. */
struct cuda_place cuda_device_now(void);
/* A context's. The thread is as it was. */
struct cuda_place cuda_device_in(cuda_handle context);
/* That whose pool a stream allocates from. */
uint32_t cuda_device_of_stream(cuda_handle stream, uint32_t now);

/* The stream that a call means: the default stream of entries that end in _ptsz or _ptds is the thread's own. */
static inline cuda_handle cuda_device_stream(cuda_handle stream, bool per_thread) {
    return !stream && per_thread ? (cuda_handle)CUDA_STREAM_PER_THREAD : stream;
}

/* That which the thread has chosen, also where it has no context; for a call of a runtime from `caller`. */
uint32_t cuda_device_of_thread(uintptr_t caller);

/* Whether the stream is being captured: an allocation in it is a node of a graph. `otherwise`: the answer where the
 * driver does not say. */
bool cuda_device_captures(cuda_handle stream, bool otherwise);
/* The number of the capture that the stream takes part in, of as many bits of the driver's as there is room for: its
 * own, or one that an event drew it into. 0: none, or the driver does not say. */
uint32_t cuda_device_capture(cuda_handle stream);

/* The device's primary context is this one; what a device has left, or whether it has a context, after a release. */
void cuda_device_primary(uint32_t device, cuda_handle context);
cuda_handle cuda_device_primary_of(uint32_t device);
/* The same of the driver, which is asked while there is one, and so makes none; NULL: there is none. */
cuda_handle cuda_device_ask_primary(uint32_t device);
/* A context has ended: the next one may have its address, on another device. */
void cuda_device_context_ended(void);
bool cuda_device_is_active(uint32_t device);

/* All the memory of the device that the thread is on; 0: it cannot be told. Not while anybody captures a stream. */
uint64_t cuda_device_total(void);

/* Bytes of a device that are out of it, and as many of them as were asked for. The mover sets it. */
extern uint64_t (*cuda_device_stowed)(uint32_t device, uint64_t *asked);

/* The program was told these figures about the device that it is on: what is moved out is more to it than there is. */
void cuda_device_figures(uint64_t available, uint64_t total);
/* Asks for them, if it is time. `urgent`: it is. */
void cuda_device_sample(const struct cuda_place *place, bool urgent);

#pragma GCC visibility pop

#endif
