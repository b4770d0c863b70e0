/* cuda_device.h — harmless questions to the driver: the device and context of a thread, whether a stream is in capture,
 * how much memory there is.
 * In: threads that have just returned from a call of CUDA. Out: the driver's answers. No question makes a context or
 * initialises anything. While a stream is in capture, questions that the driver refuses during a capture are left
 * out. */
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

/* The target of the calling thread: its current context, and that context's device. */
struct cuda_target cuda_device_now(void);
/* The target of a context. The thread's own context does not change. */
struct cuda_target cuda_device_in(cuda_handle context);
/* The device whose pool a stream allocates from. `now`: the thread's device, which is the answer if the driver does not
 * tell. */
uint32_t cuda_device_of_stream(cuda_handle stream, uint32_t now);

/* The stream that a handle means. In entries whose names end in _ptsz or _ptds (`per_thread`), handle 0 is the thread's
 * own default stream. */
static inline cuda_handle cuda_device_stream(cuda_handle stream, bool per_thread) {
    return !stream && per_thread ? (cuda_handle)CUDA_STREAM_PER_THREAD : stream;
}

/* The device that the thread has chosen, even if it has no context. `caller` is an address in code that calls the
 * runtime: if several runtimes are loaded, the runtime of this code is asked. */
uint32_t cuda_device_of_thread(uintptr_t caller);

/* Whether the stream is in capture. An allocation on a stream in capture is a node of a graph. `otherwise` is the
 * answer if the driver does not tell. */
bool cuda_device_captures(cuda_handle stream, bool otherwise);
/* Returns the number of the capture that the stream takes part in, or 0 if there is none. The capture began on this
 * stream, or an event drew the stream into it. The number is the lower 32 bits of the driver's number. If the driver
 * does not tell its number, the answer is that of cuda_captures_find. */
uint32_t cuda_device_capture(cuda_handle stream);

/* cuda_device_primary notes that this context is the device's primary context. cuda_device_primary_of returns the
 * context that was noted for the device. This context may have ended since. */
void cuda_device_primary(uint32_t device, cuda_handle context);
cuda_handle cuda_device_primary_of(uint32_t device);
/* Sets *context to the device's primary context, or to NULL if there is none. First asks the driver whether the context
 * exists, because a request for a missing context would make one. Returns 0 or the driver's error. */
int cuda_device_ask_primary(uint32_t device, cuda_handle *context);
/* cuda_device_context_ended counts a context that has ended. cuda_device_contexts_ended returns the count. When the
 * count has grown, a context at a known address may be a new context, perhaps on another device. */
void cuda_device_context_ended(void);
uint32_t cuda_device_contexts_ended(void);
/* Whether the device's primary context exists. True also if the driver does not tell. */
bool cuda_device_is_active(uint32_t device);

enum { CUDA_POINTER_OF_HOST = 1, CUDA_POINTER_OF_DEVICE = 2 }; /* CUmemorytype */
struct cuda_pointer {
    uint32_t type, device;
    bool managed;
};
/* Asks the driver about a pointer. If the driver does not know the pointer, *is does not change. */
void cuda_device_ask_pointer(cuda_address at, struct cuda_pointer *is);

/* Returns the bytes of memory that the thread's device has, or 0 if they are unknown. Do not call it while any stream
 * is in capture. */
uint64_t cuda_device_total(void);

/* Returns the bytes of the blocks whose content was moved off the device. Sets *asked to the bytes that the program
 * requested for these blocks, before memstow rounded them up. serve/ sets this pointer. */
extern uint64_t (*cuda_device_stowed)(uint32_t device, uint64_t *asked);
/* cuda_device_added: how many bytes memstow adds to the device's total in answers to the program. These are the bytes
 * that were moved off the device, or 0 if serve/ has set cuda_device_total_stays. */
extern bool cuda_device_total_stays;
uint64_t cuda_device_added(uint32_t device);
/* Spare bytes of a device: the program has freed them, and memstow keeps them for the next request. serve/ sets this
 * pointer. */
extern uint64_t (*cuda_device_spare)(uint32_t device);

/* Notes the figures of the thread's device that the program has just asked for. `total` still includes
 * cuda_device_added, and `available` still includes spare memory. */
void cuda_device_figures(uint64_t available, uint64_t total);
/* Asks the driver for the figures of the target's device, and notes them. If the driver was asked a short time ago, it
 * is asked again only if `urgent` is true. */
void cuda_device_sample(const struct cuda_target *target, bool urgent);

#pragma GCC visibility pop

#endif
