/* cuda_device.h — harmless questions to the driver: the device and context of a thread, whether a stream is in capture,
 * how much memory there is.
 * In: threads that have just returned from a call of CUDA. Out: figures. It makes no context, initialises nothing, and
 * asks nothing that the driver refuses while a stream is in capture. */
#ifndef MEMSTOW_CUDA_DEVICE_H
#define MEMSTOW_CUDA_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"

#pragma GCC visibility push(hidden)

struct cuda_target {
    cuda_handle context; /* NULL: there is none */
    uint32_t device;     /* 0 if it is unknown */
};

/* The target of the calling thread. */
struct cuda_target cuda_device_now(void);
/* The target of a context. The thread's own context does not change. */
struct cuda_target cuda_device_in(cuda_handle context);
/* The device whose pool a stream allocates from. */
uint32_t cuda_device_of_stream(cuda_handle stream, uint32_t now);

/* The stream that a call means. For entries that end in _ptsz or _ptds, the default stream is the thread's own. */
static inline cuda_handle cuda_device_stream(cuda_handle stream, bool per_thread) {
    return !stream && per_thread ? (cuda_handle)CUDA_STREAM_PER_THREAD : stream;
}

/* The device that the thread has chosen, even if it has no context. `caller` is the address of a call of the
 * runtime. */
uint32_t cuda_device_of_thread(uintptr_t caller);

/* Whether the stream is in capture. An allocation in it then is a node of a graph. `otherwise` is the answer if the
 * driver does not tell. */
bool cuda_device_captures(cuda_handle stream, bool otherwise);
/* The number of the capture that the stream takes part in: its own, or one that it was drawn into by an event. It has
 * as many of the driver's bits as fit. 0: there is none, or the driver does not tell. */
uint32_t cuda_device_capture(cuda_handle stream);

/* primary: this context is the device's primary one. primary_of: call it after a release of the device's primary
 * context. It returns that context, if it still exists. */
void cuda_device_primary(uint32_t device, cuda_handle context);
cuda_handle cuda_device_primary_of(uint32_t device);
/* As cuda_device_primary_of, but asks the driver. The driver is asked only while the context exists, so that the
 * question makes none. NULL: there is no such context. */
cuda_handle cuda_device_ask_primary(uint32_t device);
/* A context has ended. The next one may have the same address, on another device. */
void cuda_device_context_ended(void);
uint32_t cuda_device_contexts_ended(void);
/* Whether the device's primary context exists. True also if the driver does not tell. */
bool cuda_device_is_active(uint32_t device);

/* What the driver says of a pointer. Nothing changes where it does not know it. */
enum { CUDA_POINTER_OF_HOST = 1, CUDA_POINTER_OF_DEVICE = 2 }; /* CUmemorytype */
struct cuda_pointer {
    uint32_t type, device;
    bool managed;
};
void cuda_device_ask_pointer(cuda_address at, struct cuda_pointer *is);

/* The bytes of the thread's device; 0: unknown. Do not call it while any stream is in capture. */
uint64_t cuda_device_total(void);

/* Bytes that were moved off a device, and the part that was asked for by the program. The mover sets it. */
extern uint64_t (*cuda_device_stowed)(uint32_t device, uint64_t *asked);
/* Bytes of a device that were freed, and that memstow keeps for the next request. serve/ sets it. */
extern uint64_t (*cuda_device_spare)(uint32_t device);

/* Call it when the program was told these figures of its present device. `total` includes memory that was moved off it,
 * `available` what memstow keeps. */
void cuda_device_figures(uint64_t available, uint64_t total);
/* Asks the driver for the figures if it is time. `urgent`: it is time now. */
void cuda_device_sample(const struct cuda_target *target, bool urgent);

#pragma GCC visibility pop

#endif
