/* gpu.h — shared by the programs of the GPU suite. It finds the driver at run time, makes device 0 ready, and has
 * kernels, and contents that are made from a seed. No toolkit is needed, and nothing of CUDA is linked: the same
 * program runs on a GPU, and over the simulated driver of tests/simcuda (a test double), where the program itself is
 * tested. A failed check ends the program with a message and status 1. */
#ifndef GPU_H
#define GPU_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../prog/abi.h"
#include "../simcuda/cuda_abi.h"

#define MIB ((size_t)1 << 20)
#define MUST(holds) gpu_must(!!(holds), #holds, __FILE__, __LINE__)
#define OK(call) gpu_ok((call), #call, __FILE__, __LINE__)

static void gpu_must(int holds, const char *what, const char *file, int line) {
    if (holds) return;
    fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
    exit(1);
}

static void gpu_ok(int result, const char *what, const char *file, int line) {
    if (!result) return;
    fprintf(stderr, "%s:%d: error %d of CUDA: %s\n", file, line, result, what);
    exit(1);
}

/* F(member, symbol, parameters) */
#define GPU_FUNCTIONS(F)                                                                                               \
    F(init, cuInit, (unsigned))                                                                                        \
    F(device_name, cuDeviceGetName, (char *, int, CUdevice))                                                           \
    F(retain, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                                                       \
    F(set_current, cuCtxSetCurrent, (CUcontext))                                                                       \
    F(synchronize, cuCtxSynchronize, (void))                                                                           \
    F(info, cuMemGetInfo_v2, (size_t *, size_t *))                                                                     \
    F(alloc, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                                                   \
    F(free, cuMemFree_v2, (CUdeviceptr))                                                                               \
    F(alloc_async, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream))                                                 \
    F(free_async, cuMemFreeAsync, (CUdeviceptr, CUstream))                                                             \
    F(range, cuMemGetAddressRange_v2, (CUdeviceptr *, size_t *, CUdeviceptr))                                          \
    F(host_alloc, cuMemHostAlloc, (void **, size_t, unsigned))                                                         \
    F(host_free, cuMemFreeHost, (void *))                                                                              \
    F(ipc, cuIpcGetMemHandle, (CUipcMemHandle *, CUdeviceptr))                                                         \
    F(to_device, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                                                 \
    F(to_host, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                                         \
    F(stream, cuStreamCreate, (CUstream *, unsigned))                                                                  \
    F(stream_wait, cuStreamSynchronize, (CUstream))                                                                    \
    F(stream_query, cuStreamQuery, (CUstream))                                                                         \
    F(reserve, cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long))                  \
    F(unreserve, cuMemAddressFree, (CUdeviceptr, size_t))                                                              \
    F(create, cuMemCreate, (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long))  \
    F(release, cuMemRelease, (CUmemGenericAllocationHandle))                                                           \
    F(map, cuMemMap, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long))                  \
    F(unmap, cuMemUnmap, (CUdeviceptr, size_t))                                                                        \
    F(access, cuMemSetAccess, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))                                  \
    F(capture, cuStreamBeginCapture_v2, (CUstream, int))                                                               \
    F(capture_end, cuStreamEndCapture, (CUstream, CUgraph *))                                                          \
    F(graph_make, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))                           \
    F(graph_launch, cuGraphLaunch, (CUgraphExec, CUstream))                                                            \
    F(graph_end, cuGraphExecDestroy, (CUgraphExec))                                                                    \
    F(graph_destroy, cuGraphDestroy, (CUgraph))                                                                        \
    F(module, cuModuleLoadData, (CUmodule *, const void *))                                                            \
    F(function, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                                           \
    F(launch, cuLaunchKernel,                                                                                          \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **, void **))

#define GPU_MEMBER(member, symbol, parameters) CUresult(*member) parameters;
static struct { GPU_FUNCTIONS(GPU_MEMBER) } cu;

/* Both kernels go over all 32-bit words, with any number of threads. The simulated driver knows them by their names,
 * and ignores the text. */
static const char gpu_ptx[] = ".version 6.0\n.target sm_52\n.address_size 64\n"
                              ".visible .entry sim_fill(.param .u64 at, .param .u64 words, .param .u64 value)\n"
                              "{\n"
                              ".reg .u64 %d<8>;\n.reg .u32 %r<8>;\n.reg .pred %p;\n"
                              "ld.param.u64 %d1, [at];\ncvta.to.global.u64 %d1, %d1;\n"
                              "ld.param.u64 %d2, [words];\nld.param.u64 %d3, [value];\ncvt.u32.u64 %r1, %d3;\n"
                              "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
                              "mad.wide.u32 %d4, %r2, %r3, 0;\ncvt.u64.u32 %d5, %r4;\nadd.u64 %d4, %d4, %d5;\n"
                              "mov.u32 %r5, %nctaid.x;\nmul.wide.u32 %d6, %r5, %r3;\n"
                              "again:\nsetp.ge.u64 %p, %d4, %d2;\n@%p bra done;\n"
                              "shl.b64 %d7, %d4, 2;\nadd.u64 %d7, %d7, %d1;\nst.global.u32 [%d7], %r1;\n"
                              "add.u64 %d4, %d4, %d6;\nbra again;\n"
                              "done:\nret;\n}\n"
                              ".visible .entry sim_add(.param .u64 to, .param .u64 from, .param .u64 words)\n"
                              "{\n"
                              ".reg .u64 %d<10>;\n.reg .u32 %r<8>;\n.reg .pred %p;\n"
                              "ld.param.u64 %d1, [to];\ncvta.to.global.u64 %d1, %d1;\n"
                              "ld.param.u64 %d2, [from];\ncvta.to.global.u64 %d2, %d2;\nld.param.u64 %d3, [words];\n"
                              "mov.u32 %r2, %ctaid.x;\nmov.u32 %r3, %ntid.x;\nmov.u32 %r4, %tid.x;\n"
                              "mad.wide.u32 %d4, %r2, %r3, 0;\ncvt.u64.u32 %d5, %r4;\nadd.u64 %d4, %d4, %d5;\n"
                              "mov.u32 %r5, %nctaid.x;\nmul.wide.u32 %d6, %r5, %r3;\n"
                              "again:\nsetp.ge.u64 %p, %d4, %d3;\n@%p bra done;\n"
                              "shl.b64 %d7, %d4, 2;\nadd.u64 %d8, %d7, %d1;\nadd.u64 %d9, %d7, %d2;\n"
                              "ld.global.u32 %r6, [%d8];\nld.global.u32 %r7, [%d9];\nadd.u32 %r6, %r6, %r7;\n"
                              "st.global.u32 [%d8], %r6;\nadd.u64 %d4, %d4, %d6;\nbra again;\n"
                              "done:\nret;\n}\n";

static CUcontext gpu_context;
static CUfunction gpu_fill_kernel, gpu_add_kernel;
static bool gpu_is_double; /* the simulated driver: no figure is shown */

/* Finds the driver, makes the primary context of device 0 current, and finds memstow's ABI if it is there. Without a
 * device the program ends with status 77. */
__attribute__((unused)) static void gpu_begin(void) {
    CUmodule module;
    char name[128] = "";
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
#define GPU_FIND(member, symbol, parameters) *(void **)&cu.member = library ? dlsym(library, #symbol) : NULL;
    GPU_FUNCTIONS(GPU_FIND)
    if (!library || cu.init(0) || cu.device_name(name, sizeof name, 0)) {
        puts("no GPU");
        exit(77);
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* the output of a part that hangs and is killed must not be lost */
    gpu_is_double = strstr(name, "test double") != NULL;
    OK(cu.retain(&gpu_context, 0));
    OK(cu.set_current(gpu_context));
    OK(cu.module(&module, gpu_ptx));
    OK(cu.function(&gpu_fill_kernel, module, "sim_fill"));
    OK(cu.function(&gpu_add_kernel, module, "sim_add"));
    abi_find();
}

static inline void gpu_kernel(CUfunction kernel, uint64_t a, uint64_t b, uint64_t c, CUstream stream) {
    void *arguments[] = {&a, &b, &c};
    OK(cu.launch(kernel, 1024, 1, 1, 256, 1, 1, 0, stream, arguments, NULL));
}
/* Sets `words` words of 32 bits to `value`. */
static inline void gpu_fill(CUdeviceptr at, size_t words, uint32_t value, CUstream stream) {
    gpu_kernel(gpu_fill_kernel, at, words, value, stream);
}
/* to[i] += from[i] */
static inline void gpu_add(CUdeviceptr to, CUdeviceptr from, size_t words, CUstream stream) {
    gpu_kernel(gpu_add_kernel, to, from, words, stream);
}

/* --- contents: each seed gives other contents, and words do not repeat --- */

static inline uint64_t gpu_word(uint64_t i, uint64_t seed) {
    uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u ^ seed * 0xc2b2ae3d27d4eb4fu;
    x ^= x >> 29;
    return x * 0xbf58476d1ce4e5b9u;
}

static inline void gpu_write(CUdeviceptr at, size_t bytes, uint64_t seed) {
    uint64_t *data = malloc(bytes);
    MUST(data);
    for (size_t i = 0; i < bytes / 8; i++) data[i] = gpu_word(i, seed);
    OK(cu.to_device(at, data, bytes));
    free(data);
}

static inline bool gpu_holds(CUdeviceptr at, size_t bytes, uint64_t seed) {
    uint64_t *data = malloc(bytes);
    bool same = true;
    MUST(data);
    OK(cu.to_host(data, at, bytes));
    for (size_t i = 0; i < bytes / 8 && same; i++) same = data[i] == gpu_word(i, seed);
    free(data);
    return same;
}

static inline bool gpu_all_are(CUdeviceptr at, size_t words, uint32_t value) {
    uint32_t *data = malloc(words * 4);
    bool same = true;
    MUST(data);
    OK(cu.to_host(data, at, words * 4));
    for (size_t i = 0; i < words && same; i++) same = data[i] == value;
    free(data);
    return same;
}

/* --- models --- */

static inline uint32_t gpu_model(const char *name) {
    MUST(has_memstow);
    int64_t id = abi_memstow_owner_open(MEMSTOW_MODEL, name, "", 0, 0);
    MUST(id > 0);
    return (uint32_t)id;
}

/* Allocates in the model's scope. If `stream` is not NULL, the allocation is made on that stream. */
static inline CUdeviceptr gpu_alloc_for(uint32_t model, size_t bytes, const CUstream *stream) {
    CUdeviceptr at = 0;
    MUST(!abi_memstow_scope_enter(model));
    OK(stream ? cu.alloc_async(&at, bytes, *stream) : cu.alloc(&at, bytes));
    MUST(!abi_memstow_scope_leave(model));
    return at;
}

static inline uint64_t gpu_out_of(uint32_t model) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(!abi_memstow_owner_figures(model, &figures));
    return figures.device_stowed_bytes;
}

static inline size_t gpu_free_bytes(void) {
    size_t available, total;
    OK(cu.info(&available, &total));
    MUST(available <= total);
    return available;
}

static inline double gpu_seconds(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#endif
