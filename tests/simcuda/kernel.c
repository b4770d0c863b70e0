/* kernel.c — stand-ins for kernels: a few named functions. Every module contains all of them. Their arguments are
 * 64-bit words (addresses, counts, values). */
#include "hash.h"
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static bool released;

/* The bytes at an address, as a kernel sees them. NULL: the kernel cannot access them. */
static char *touch(struct sim_context *ctx, uint64_t address, size_t bytes, bool write) {
    size_t length = bytes;
    char *at = access_at(address, &length, ctx, write, ACCESS_KERNEL);
    return at && length == bytes ? at : NULL;
}

/* sim_fill(address, words, value): 32-bit words. */
static CUresult run_fill(struct sim_context *ctx, const uint64_t *a) {
    uint32_t value = (uint32_t)a[2];
    for (uint64_t i = 0; i < a[1]; i++) {
        char *at = touch(ctx, a[0] + i * 4, 4, true);
        if (!at) return CUDA_ERROR_ILLEGAL_ADDRESS;
        memcpy(at, &value, 4);
    }
    return CUDA_SUCCESS;
}

/* sim_add(to, from, words): to[i] += from[i]. */
static CUresult run_add(struct sim_context *ctx, const uint64_t *a) {
    for (uint64_t i = 0; i < a[2]; i++) {
        char *from = touch(ctx, a[1] + i * 4, 4, false), *to = touch(ctx, a[0] + i * 4, 4, true);
        uint32_t x, y;
        if (!from || !to) return CUDA_ERROR_ILLEGAL_ADDRESS;
        memcpy(&x, from, 4);
        memcpy(&y, to, 4);
        y += x;
        memcpy(to, &y, 4);
    }
    return CUDA_SUCCESS;
}

/* sim_touch(address, bytes): reads a byte of each page. */
static CUresult run_touch(struct sim_context *ctx, const uint64_t *a) {
    for (uint64_t i = 0; i < a[1]; i += 4096)
        if (!touch(ctx, a[0] + i, 1, false)) return CUDA_ERROR_ILLEGAL_ADDRESS;
    return CUDA_SUCCESS;
}

/* sim_wait(): a kernel that does not end before sim_release_kernels. */
static CUresult run_nothing(struct sim_context *ctx, const uint64_t *a) { return (void)ctx, (void)a, CUDA_SUCCESS; }
static bool wait_blocked(const uint64_t *a) { return (void)a, !released; }

/* sim_set_condition(handle, value): what cudaGraphSetConditional does in a kernel. */
static CUresult run_set_condition(struct sim_context *ctx, const uint64_t *a) {
    return (void)ctx, condition_set(a[0], (uint32_t)a[1]);
}

/* memstow_hash(at, units of 16 bytes, seed1, seed2, sheet): stands in for memstow's kernel of that name. In the real
 * kernel, each block of threads writes the sums of its units to its own place in the sheet. Here the first block's
 * place gets the sums of all units. */
static CUresult run_hash(struct sim_context *ctx, const uint64_t *a) {
    struct hash_sums sums = {0, 0};
    size_t bytes = a[1] * 16, length;
    for (size_t done = 0; done < bytes; done += length) {
        length = bytes - done;
        char *at = access_at(a[0] + done, &length, ctx, false, ACCESS_KERNEL);
        if (!at) return CUDA_ERROR_ILLEGAL_ADDRESS;
        hash_add(&sums, at, length, done / 8, a[2], a[3]);
    }
    uint64_t *sheet = (uint64_t *)(void *)touch(ctx, a[4], 24, true);
    if (!sheet) return CUDA_ERROR_ILLEGAL_ADDRESS;
    sheet[0] = sums.x;
    sheet[1] = sums.y;
    sheet[2] = a[1];
    return CUDA_SUCCESS;
}

static const struct kernel KERNELS[] = {
    {"sim_fill", 3, run_fill, NULL},       {"sim_add", 3, run_add, NULL},
    {"sim_touch", 2, run_touch, NULL},     {"sim_wait", 0, run_nothing, wait_blocked},
    {"sim_nothing", 0, run_nothing, NULL}, {"sim_set_condition", 2, run_set_condition, NULL},
    {"memstow_hash", 5, run_hash, NULL},
};

/* ---- modules: whatever the image, the kernels above are in it */

API(cuModuleLoadData, NEEDS_CONTEXT | UNSAFE, (CUmodule * out, const void *image), (out, image)) {
    if (!out || !image) return CUDA_ERROR_INVALID_VALUE;
    *out = (CUmodule)KERNELS;
    return CUDA_SUCCESS;
}

API(cuModuleUnload, NEEDS_CONTEXT | UNSAFE, (CUmodule module), (module)) {
    return module == (CUmodule)KERNELS ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

API(cuModuleGetFunction, NEEDS_CONTEXT, (CUfunction * out, CUmodule module, const char *name), (out, module, name)) {
    if (!out || !name || module != (CUmodule)KERNELS) return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
        if (!strcmp(KERNELS[i].name, name)) {
            *out = (CUfunction)&KERNELS[i];
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_NOT_FOUND;
}

static const struct kernel *kernel_get(CUfunction function) {
    const struct kernel *self = (const struct kernel *)function;
    return self >= KERNELS && self < KERNELS + sizeof KERNELS / sizeof *KERNELS ? self : NULL;
}

CUresult kernel_op(CUfunction function, void **arguments, void **extra, struct op *out) {
    const struct kernel *kernel = kernel_get(function);
    if (!kernel) return CUDA_ERROR_INVALID_HANDLE;
    if (extra || (kernel->arguments && !arguments)) return CUDA_ERROR_INVALID_VALUE;
    *out = (struct op){.kind = OP_KERNEL, .kernel.kernel = kernel};
    for (int i = 0; i < kernel->arguments; i++) out->kernel.arguments[i] = *(uint64_t *)arguments[i];
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, void **arguments, void **extra, CUstream handle) {
    struct sim_stream *stream = stream_get(handle);
    struct op op;
    CUresult result = stream ? kernel_op(function, arguments, extra, &op) : CUDA_ERROR_INVALID_HANDLE;
    return result ? result : engine_add(stream, &op, NULL);
}

#define DIMENSIONS unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared
#define GRID_IS_GOOD (gx && gy && gz && bx && by && bz && (uint64_t)bx * by * bz <= 1024 && shared <= 232448)
SAME(cuLaunchKernel, NEEDS_CONTEXT, (CUfunction f, DIMENSIONS, CUstream stream, void **arguments, void **extra),
     GRID_IS_GOOD ? launch(f, arguments, extra, stream) : CUDA_ERROR_INVALID_VALUE)
SAME(cuLaunchKernel_ptsz, NEEDS_CONTEXT, (CUfunction f, DIMENSIONS, CUstream stream, void **arguments, void **extra),
     GRID_IS_GOOD ? launch(f, arguments, extra, stream_per_thread(stream)) : CUDA_ERROR_INVALID_VALUE)

/* Attributes of a launch change nothing here. */
static CUresult launch_as(const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra, bool per_thread) {
    if (!c || !c->gridDimX || !c->gridDimY || !c->gridDimZ || !c->blockDimX || !c->blockDimY || !c->blockDimZ)
        return CUDA_ERROR_INVALID_VALUE;
    return launch(f, arguments, extra, per_thread ? stream_per_thread(c->hStream) : c->hStream);
}
SAME(cuLaunchKernelEx, NEEDS_CONTEXT, (const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra),
     launch_as(c, f, arguments, extra, false))
SAME(cuLaunchKernelEx_ptsz, NEEDS_CONTEXT, (const CUlaunchConfig *c, CUfunction f, void **arguments, void **extra),
     launch_as(c, f, arguments, extra, true))

/* The only attribute that is not 0 is how many threads a block may have. */
API(cuFuncGetAttribute, NEEDS_CONTEXT, (int *out, int which, CUfunction function), (out, which, function)) {
    if (!out || which < 0 || !kernel_get(function)) return CUDA_ERROR_INVALID_VALUE;
    *out = which == CU_FUNC_MAX_THREADS ? 1024 : 0;
    return CUDA_SUCCESS;
}

API(cuFuncSetAttribute, NEEDS_CONTEXT, (CUfunction function, int which, int value), (function, which, value)) {
    return which >= 0 && value >= 0 && kernel_get(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

API(cuFuncSetCacheConfig, NEEDS_CONTEXT, (CUfunction function, int config), (function, config)) {
    return config >= 0 && kernel_get(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

__attribute__((visibility("default"))) void sim_release_kernels(int release) {
    pthread_mutex_lock(&sim_lock);
    released = release;
    engine_kick();
    pthread_mutex_unlock(&sim_lock);
}
