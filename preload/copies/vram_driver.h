/* vram_driver.h — the functions of the driver that serving and moving device memory needs.
 * In: a function that looks up a name. Out: all functions, or none: if the driver lacks one function, memstow neither
 * serves device memory nor moves it. The functions for kernels may be missing: then memory is never hashed. */
#ifndef MEMSTOW_VRAM_DRIVER_H
#define MEMSTOW_VRAM_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"

#pragma GCC visibility push(hidden)

#define VRAM_GRANULE ((uint64_t)2 << 20) /* the unit of physical memory, in bytes; sizes are rounded up to it */

struct vram_prop { /* CUmemAllocationProp */
    int type, handle_types, location_type, location_id;
    void *windows;
    unsigned char compression, rdma;
    unsigned short usage;
    unsigned char reserved[4];
};
struct vram_access { /* CUmemAccessDesc */
    int location_type, location_id, flags;
};

/* F(name, parameters) for each function */
#define VRAM_FUNCTIONS(F)                                                                                              \
    F(cuCtxGetCurrent, (cuda_handle *))                                                                                \
    F(cuCtxSetCurrent, (cuda_handle))                                                                                  \
    F(cuDeviceGetAttribute, (int *, int, int))                                                                         \
    F(cuStreamGetCtx, (cuda_handle, cuda_handle *))                                                                    \
    F(cuDeviceGetDefaultMemPool, (cuda_handle *, int))                                                                 \
    F(cuMemPoolTrimTo, (cuda_handle, size_t))                                                                          \
    F(cuMemGetInfo_v2, (size_t *, size_t *))                                                                           \
    F(cuCtxSynchronize, (void))                                                                                        \
    F(cuThreadExchangeStreamCaptureMode, (int *))                                                                      \
    F(cuMemAddressReserve, (cuda_address *, size_t, size_t, cuda_address, unsigned long long))                         \
    F(cuMemAddressFree, (cuda_address, size_t))                                                                        \
    F(cuMemCreate, (cuda_memory *, size_t, const struct vram_prop *, unsigned long long))                              \
    F(cuMemRelease, (cuda_memory))                                                                                     \
    F(cuMemMap, (cuda_address, size_t, size_t, cuda_memory, unsigned long long))                                       \
    F(cuMemUnmap, (cuda_address, size_t))                                                                              \
    F(cuMemSetAccess, (cuda_address, size_t, const struct vram_access *, size_t))                                      \
    F(cuMemHostAlloc, (void **, size_t, unsigned))                                                                     \
    F(cuMemFreeHost, (void *))                                                                                         \
    F(cuMemHostRegister_v2, (void *, size_t, unsigned))                                                                \
    F(cuMemHostUnregister, (void *))                                                                                   \
    F(cuMemcpyDtoHAsync_v2, (void *, cuda_address, size_t, cuda_handle))                                               \
    F(cuMemcpyHtoDAsync_v2, (cuda_address, const void *, size_t, cuda_handle))                                         \
    F(cuStreamCreate, (cuda_handle *, unsigned))                                                                       \
    F(cuStreamDestroy_v2, (cuda_handle))                                                                               \
    F(cuStreamSynchronize, (cuda_handle))                                                                              \
    F(cuStreamWaitEvent, (cuda_handle, cuda_handle, unsigned))                                                         \
    F(cuEventCreate, (cuda_handle *, unsigned))                                                                        \
    F(cuEventDestroy_v2, (cuda_handle))                                                                                \
    F(cuEventRecord, (cuda_handle, cuda_handle))                                                                       \
    F(cuEventQuery, (cuda_handle))                                                                                     \
    F(cuEventSynchronize, (cuda_handle))

/* These may be NULL. */
#define VRAM_KERNEL_FUNCTIONS(F)                                                                                       \
    F(cuModuleLoadData, (cuda_handle *, const void *))                                                                 \
    F(cuModuleUnload, (cuda_handle))                                                                                   \
    F(cuModuleGetFunction, (cuda_handle *, cuda_handle, const char *))                                                 \
    F(cuLaunchKernel, (cuda_handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cuda_handle, \
                       void **, void **))

struct vram_driver {
#define F(name, parameters) int(*name) parameters;
    VRAM_FUNCTIONS(F)
    VRAM_KERNEL_FUNCTIONS(F)
#undef F
};

/* Looks up all functions. False: a necessary one is missing. */
bool vram_driver_find(struct vram_driver *self, void *(*find)(const char *name));

/* The driver's functions in this process. vram_driver_begin looks them up, once. Returns false if a necessary one is
 * missing. */
extern struct vram_driver vram_driver;
bool vram_driver_begin(void *(*find)(const char *name));
/* Whether vram_driver_begin has succeeded. */
bool vram_driver_is_on(void);

struct vram_visit {
    cuda_handle before; /* the context that was current */
    int mode;           /* the thread's capture mode before (CUstreamCaptureMode) */
};
/* Makes a context current on the calling thread (NULL: keeps the present one). Until vram_driver_leave, calls are
 * allowed even if the thread captures a stream, and do not break the capture. Returns 0, or the driver's error; after
 * an error the thread has the context and capture mode that it had before. vram_driver_leave restores both. */
int vram_driver_enter(const struct vram_driver *self, cuda_handle context, struct vram_visit *visit);
void vram_driver_leave(const struct vram_driver *self, struct vram_visit *visit);

#pragma GCC visibility pop

#endif
