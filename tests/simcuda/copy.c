/* copy.c — copies and fills. Pinned memory is read when the operation is executed, as by a real device's copy engine.
 * Pageable memory is read and written before the call returns. */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

static bool pageable(uint64_t address) { return !space_inside(address) && !host_find((void *)(uintptr_t)address); }

static size_t extent_of(const struct shape *s, size_t pitch, size_t slice) {
    return (s->depth - 1) * slice + (s->height - 1) * pitch + s->width;
}

/* For an asynchronous copy from pageable memory, the driver first makes a copy of its own. */
static CUresult stage(struct op *op) {
    const struct shape *s = &op->copy.shape;
    size_t bytes = extent_of(s, s->spitch, s->sslice);
    op->copy.staged = malloc(bytes);
    if (!op->copy.staged) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(op->copy.staged, (void *)(uintptr_t)op->copy.from, bytes);
    return CUDA_SUCCESS;
}

static CUresult submit(struct op op, struct sim_stream *stream, bool wait) {
    const struct shape *s = &op.copy.shape;
    if (!s->width || !s->height || !s->depth) return CUDA_SUCCESS;
    bool to_host = pageable(op.copy.to), from_host = pageable(op.copy.from);
    if (wait) {
        CUresult result = capture_forbids();
        if (result) return result;
    }
    if (!stream->capture && !wait && from_host) {
        CUresult result = stage(&op);
        if (result) return result;
    }
    CUresult result = engine_add(stream, &op, NULL);
    if (result) {
        free(op.copy.staged);
        return result;
    }
    return wait || (to_host && !stream->capture) ? engine_drain_stream(stream) : CUDA_SUCCESS;
}

static struct op flat(uint64_t to, uint64_t from, size_t bytes) {
    return (struct op){.kind = OP_COPY,
                       .copy = {.to = to, .from = from, .shape = {.width = bytes, .height = 1, .depth = 1}}};
}

enum { TO_DEVICE = 1, FROM_DEVICE = 2, BETWEEN_DEVICES = 4, WAIT = 8 };

/* Whether a device can use the address: it is device memory, or pinned memory of the host. */
static bool is_device(uint64_t at) { return space_inside(at) || host_find((void *)(uintptr_t)at); }

static CUresult linear(uint64_t to, uint64_t from, size_t bytes, CUstream handle, int how) {
    struct sim_stream *stream = stream_get(handle);
    call_details(bytes, to);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!bytes) return CUDA_SUCCESS;
    if (!to || !from || (how & TO_DEVICE && !is_device(to)) || (how & FROM_DEVICE && !is_device(from)))
        return CUDA_ERROR_INVALID_VALUE;
    if (host_leaves(to, bytes) || host_leaves(from, bytes)) return CUDA_ERROR_INVALID_VALUE;
    struct op op = flat(to, from, bytes);
    op.copy.peer = how & BETWEEN_DEVICES;
    return submit(op, stream, how & WAIT);
}

#define N(x) ((uint64_t)(uintptr_t)(x))
#define PTDS CU_STREAM_PER_THREAD
#define LINEAR(name, to_type, from_type, how)                                                                          \
    SAME(name, NEEDS_CONTEXT, (to_type to, from_type from, size_t n), linear(N(to), N(from), n, NULL, (how) | WAIT))   \
    SAME(name##_ptds, NEEDS_CONTEXT, (to_type to, from_type from, size_t n),                                           \
         linear(N(to), N(from), n, PTDS, (how) | WAIT))
#define LINEAR_ASYNC(name, to_type, from_type, how)                                                                    \
    SAME(name, NEEDS_CONTEXT, (to_type to, from_type from, size_t n, CUstream stream),                                 \
         linear(N(to), N(from), n, stream, how))                                                                       \
    SAME(name##_ptsz, NEEDS_CONTEXT, (to_type to, from_type from, size_t n, CUstream stream),                          \
         linear(N(to), N(from), n, stream_per_thread(stream), how))
LINEAR(cuMemcpy, CUdeviceptr, CUdeviceptr, 0)
LINEAR(cuMemcpyHtoD_v2, CUdeviceptr, const void *, TO_DEVICE)
LINEAR(cuMemcpyDtoH_v2, void *, CUdeviceptr, FROM_DEVICE)
LINEAR(cuMemcpyDtoD_v2, CUdeviceptr, CUdeviceptr, TO_DEVICE | FROM_DEVICE)
LINEAR_ASYNC(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, 0)
LINEAR_ASYNC(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, TO_DEVICE)
LINEAR_ASYNC(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, FROM_DEVICE)
LINEAR_ASYNC(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, TO_DEVICE | FROM_DEVICE)

#define PEER_PARAMETERS CUdeviceptr to, CUcontext to_ctx, CUdeviceptr from, CUcontext from_ctx, size_t n
#define PEERS (context_valid(to_ctx) && context_valid(from_ctx))
SAME(cuMemcpyPeer, NEEDS_CONTEXT, (PEER_PARAMETERS),
     PEERS ? linear(to, from, n, NULL, BETWEEN_DEVICES | WAIT) : CUDA_ERROR_INVALID_CONTEXT)
SAME(cuMemcpyPeer_ptds, NEEDS_CONTEXT, (PEER_PARAMETERS),
     PEERS ? linear(to, from, n, PTDS, BETWEEN_DEVICES | WAIT) : CUDA_ERROR_INVALID_CONTEXT)
SAME(cuMemcpyPeerAsync, NEEDS_CONTEXT, (PEER_PARAMETERS, CUstream stream),
     PEERS ? linear(to, from, n, stream, BETWEEN_DEVICES) : CUDA_ERROR_INVALID_CONTEXT)
SAME(cuMemcpyPeerAsync_ptsz, NEEDS_CONTEXT, (PEER_PARAMETERS, CUstream stream),
     PEERS ? linear(to, from, n, stream_per_thread(stream), BETWEEN_DEVICES) : CUDA_ERROR_INVALID_CONTEXT)

/* ---- arrays: for copies, all bytes of an array are one row */

static CUresult array_copy(CUarray array, size_t offset, uint64_t other, size_t bytes, bool to_array) {
    CUdeviceptr at;
    size_t pitch, height;
    if (!array_locate(array, &at, &pitch, &height)) return CUDA_ERROR_INVALID_HANDLE;
    if (offset + bytes > pitch * height) return CUDA_ERROR_INVALID_VALUE;
    at += offset;
    return linear(to_array ? at : other, to_array ? other : at, bytes, NULL, WAIT);
}
SAME(cuMemcpyHtoA_v2, NEEDS_CONTEXT, (CUarray to, size_t offset, const void *from, size_t n),
     array_copy(to, offset, N(from), n, true))
SAME(cuMemcpyAtoH_v2, NEEDS_CONTEXT, (void *to, CUarray from, size_t offset, size_t n),
     array_copy(from, offset, N(to), n, false))
SAME(cuMemcpyDtoA_v2, NEEDS_CONTEXT, (CUarray to, size_t offset, CUdeviceptr from, size_t n),
     array_copy(to, offset, from, n, true))
SAME(cuMemcpyAtoD_v2, NEEDS_CONTEXT, (CUdeviceptr to, CUarray from, size_t offset, size_t n),
     array_copy(from, offset, to, n, false))

/* ---- rectangles */

struct end {
    int type;
    const void *host;
    CUdeviceptr device;
    CUarray array;
    size_t x, y, z, pitch, height;
};

static bool locate(struct end *e, uint64_t *at) {
    switch (e->type) {
    case CU_MEMORYTYPE_HOST:
        *at = N(e->host);
        break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
        *at = e->device;
        break;
    case CU_MEMORYTYPE_ARRAY:
        if (!array_locate(e->array, at, &e->pitch, &e->height)) return false;
        break;
    default:
        return false;
    }
    *at += (e->z * e->height + e->y) * e->pitch + e->x;
    return true;
}

static CUresult shape_of(struct end to, struct end from, size_t width, size_t height, size_t depth, struct op *out) {
    *out = (struct op){.kind = OP_COPY};
    if (!locate(&to, &out->copy.to) || !locate(&from, &out->copy.from)) return CUDA_ERROR_INVALID_VALUE;
    if (height > 1 && (to.pitch < width || from.pitch < width)) return CUDA_ERROR_INVALID_VALUE;
    out->copy.shape =
        (struct shape){width, height, depth, to.pitch, from.pitch, to.pitch * to.height, from.pitch * from.height};
    return CUDA_SUCCESS;
}

static CUresult shape_2d(const CUDA_MEMCPY2D *c, struct op *out) {
    return shape_of((struct end){c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, 0,
                                 c->dstPitch, 0},
                    (struct end){c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, 0,
                                 c->srcPitch, 0},
                    c->WidthInBytes, c->Height, 1, out);
}

CUresult copy_shape(const CUDA_MEMCPY3D *c, struct op *out) {
    return shape_of((struct end){c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY,
                                 c->dstZ, c->dstPitch, c->dstHeight},
                    (struct end){c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY,
                                 c->srcZ, c->srcPitch, c->srcHeight},
                    c->WidthInBytes, c->Height, c->Depth, out);
}

#define COPY(name, type, shape)                                                                                        \
    static CUresult name(const type *c, CUstream handle, bool wait) {                                                  \
        struct sim_stream *stream = stream_get(handle);                                                                \
        struct op op;                                                                                                  \
        if (!c) return CUDA_ERROR_INVALID_VALUE;                                                                       \
        if (!stream) return CUDA_ERROR_INVALID_HANDLE;                                                                 \
        CUresult result = shape(c, &op);                                                                               \
        return result ? result : submit(op, stream, wait);                                                             \
    }
COPY(copy_2d, CUDA_MEMCPY2D, shape_2d)
COPY(copy_3d, CUDA_MEMCPY3D, copy_shape)

#define SHAPED(name, type, body)                                                                                       \
    SAME(name, NEEDS_CONTEXT, (const type *c), body(c, NULL, true))                                                    \
    SAME(name##_ptds, NEEDS_CONTEXT, (const type *c), body(c, PTDS, true))
#define SHAPED_ASYNC(name, type, body)                                                                                 \
    SAME(name, NEEDS_CONTEXT, (const type *c, CUstream stream), body(c, stream, false))                                \
    SAME(name##_ptsz, NEEDS_CONTEXT, (const type *c, CUstream stream), body(c, stream_per_thread(stream), false))
SHAPED(cuMemcpy2D_v2, CUDA_MEMCPY2D, copy_2d)
SHAPED(cuMemcpy2DUnaligned_v2, CUDA_MEMCPY2D, copy_2d)
SHAPED(cuMemcpy3D_v2, CUDA_MEMCPY3D, copy_3d)
SHAPED_ASYNC(cuMemcpy2DAsync_v2, CUDA_MEMCPY2D, copy_2d)
SHAPED_ASYNC(cuMemcpy3DAsync_v2, CUDA_MEMCPY3D, copy_3d)

/* ---- fills: none of them waits, as on a device */

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, uint32_t element, size_t width, size_t height,
                     CUstream handle) {
    struct sim_stream *stream = stream_get(handle);
    call_details(width * height * element, to);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (!is_device(to) || to % element) return CUDA_ERROR_INVALID_VALUE;
    struct op op = {.kind = OP_FILL, .fill = {to, value, element, width, height, pitch}};
    return engine_add(stream, &op, NULL);
}

#define FILL(bits, name, type)                                                                                         \
    SAME(name##_v2, NEEDS_CONTEXT, (CUdeviceptr to, type value, size_t n), fill(to, 0, value, (bits) / 8, n, 1, NULL)) \
    SAME(name##_v2_ptds, NEEDS_CONTEXT, (CUdeviceptr to, type value, size_t n),                                        \
         fill(to, 0, value, (bits) / 8, n, 1, PTDS))                                                                   \
    SAME(name##Async, NEEDS_CONTEXT, (CUdeviceptr to, type value, size_t n, CUstream stream),                          \
         fill(to, 0, value, (bits) / 8, n, 1, stream))                                                                 \
    SAME(name##Async_ptsz, NEEDS_CONTEXT, (CUdeviceptr to, type value, size_t n, CUstream stream),                     \
         fill(to, 0, value, (bits) / 8, n, 1, stream_per_thread(stream)))
FILL(8, cuMemsetD8, unsigned char)
FILL(16, cuMemsetD16, unsigned short)
FILL(32, cuMemsetD32, unsigned)

#define RECTANGLE CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height
SAME(cuMemsetD2D8_v2, NEEDS_CONTEXT, (RECTANGLE), fill(to, pitch, value, 1, width, height, NULL))
SAME(cuMemsetD2D8_v2_ptds, NEEDS_CONTEXT, (RECTANGLE), fill(to, pitch, value, 1, width, height, PTDS))
SAME(cuMemsetD2D8Async, NEEDS_CONTEXT, (RECTANGLE, CUstream stream), fill(to, pitch, value, 1, width, height, stream))
SAME(cuMemsetD2D8Async_ptsz, NEEDS_CONTEXT, (RECTANGLE, CUstream stream),
     fill(to, pitch, value, 1, width, height, stream_per_thread(stream)))
