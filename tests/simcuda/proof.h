/* proof.h — shared by the unit tests of the simulated driver: a device that is ready, and patterns in its memory. */
#ifndef SIMCUDA_PROOF_H
#define SIMCUDA_PROOF_H

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cuda_calls.h"
#include "simcuda.h"

#define MIB ((size_t)1 << 20)
#define OK(call) cr_assert_eq((call), CUDA_SUCCESS, "%s", #call)
#define REFUSED(call, error) cr_assert_eq((call), (error), "%s", #call)

static CUcontext proof_context;

/* Makes the first device's primary context current. Unless the test has set the device's memory before, the device has
 * 128 MiB, because these are filled quickly. */
static inline void proof_begin(void) {
    setenv("SIMCUDA_CAPACITY", "128M", 0);
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&proof_context, 0));
    OK(cuCtxSetCurrent(proof_context));
}

static inline struct sim_usage proof_usage(int device) {
    struct sim_usage usage;
    sim_usage(device, &usage);
    return usage;
}

static inline CUmemAllocationProp proof_prop(int device) {
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, device}};
}

static inline CUmemAccessDesc proof_access(int device) {
    return (CUmemAccessDesc){{CU_MEM_LOCATION_DEVICE, device}, CU_MEM_ACCESS_READWRITE};
}

/* Waits until all streams are empty, for at most a second. Makes no call of CUDA, which a test would count. */
static inline bool proof_settled(void) {
    for (int i = 0; i < 1000; i++) {
        if (!proof_usage(0).pending) return true;
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    return false;
}

static inline CUfunction proof_kernel(const char *name) {
    CUmodule module;
    CUfunction function;
    OK(cuModuleLoadData(&module, ""));
    OK(cuModuleGetFunction(&function, module, name));
    return function;
}

static inline CUresult proof_launch(const char *name, CUstream stream, uint64_t a, uint64_t b, uint64_t c) {
    void *arguments[] = {&a, &b, &c};
    return cuLaunchKernel(proof_kernel(name), 1, 1, 1, 32, 1, 1, 0, stream, arguments, NULL);
}

#endif
