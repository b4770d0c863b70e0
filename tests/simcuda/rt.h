/* rt.h — shared by the files of the simulated runtime (libcudart.so.12 and .13, and the static one). In: calls of the
 * runtime interface. Out: calls of the driver that was found, at addresses that its resolver gave. */
#ifndef SIMCUDA_RT_H
#define SIMCUDA_RT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"

typedef int cudaError_t;

#pragma GCC visibility push(hidden)

struct rt_driver {
#define R(name, version, parameters) CUresult(*name) parameters;
#include "rt_driver.def"
};
extern struct rt_driver rt_legacy, rt_own; /* stream 0 is: the legacy stream; the thread's own */

cudaError_t rt_begin(void);              /* finds and initialises the driver */
cudaError_t rt_enter(void);              /* and gives the thread a context */
cudaError_t rt_leave(cudaError_t error); /* remembers the error */
CUresult rt_resolve(const char *name, void **out, int version, uint64_t flags, int *status);
int rt_device(void);
cudaError_t rt_context_of(int id, CUcontext *out);

#pragma GCC visibility pop

#define RT_API __attribute__((visibility("default"))) cudaError_t
/* Defines a call of the runtime that needs a context and makes one call of the driver. */
#define RT_CALL(name, parameters, call)                                                                                \
    RT_API name parameters;                                                                                            \
    RT_API name parameters {                                                                                           \
        cudaError_t error = rt_enter();                                                                                \
        return rt_leave(error ? error : (call));                                                                       \
    }
/* Defines a call with a stream: `d` is the driver's table for that stream. */
#define RT_STREAM(name, parameters, call)                                                                              \
    RT_API name parameters;                                                                                            \
    RT_API name parameters {                                                                                           \
        const struct rt_driver *d = &rt_legacy;                                                                        \
        cudaError_t error = rt_enter();                                                                                \
        return rt_leave(error ? error : (call));                                                                       \
    }                                                                                                                  \
    RT_API name##_ptsz parameters;                                                                                     \
    RT_API name##_ptsz parameters {                                                                                    \
        const struct rt_driver *d = &rt_own;                                                                           \
        cudaError_t error = rt_enter();                                                                                \
        return rt_leave(error ? error : (call));                                                                       \
    }
#define P(x) ((uint64_t)(uintptr_t)(x))
#define OUT(x) ((CUdeviceptr *)(x))

#endif
