/* rt_memory.c — the runtime's memory: allocations of every kind, pools, copies. Each function makes at most one call of
 * the driver. */
#include "rt.h"

typedef struct {
    void *ptr;
    size_t pitch, xsize, ysize;
} cudaPitchedPtr;
typedef struct {
    size_t width, height, depth;
} cudaExtent;
typedef struct {
    int x, y, z, w, f;
} cudaChannelFormatDesc;
typedef struct {
    int type, device;
    void *devicePointer, *hostPointer;
#if SIMCUDA_RUNTIME >= 13000
    long reserved[8];
#endif
} cudaPointerAttributes;

#define D rt_legacy

RT_CALL(cudaMalloc, (void **out, size_t n), D.cuMemAlloc(OUT(out), n))
RT_API cudaFree(void *at);
RT_API cudaFree(void *at) {
    cudaError_t error = rt_enter();
    return rt_leave(error || !at ? error : D.cuMemFree(P(at)));
}
RT_CALL(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height),
        D.cuMemAllocPitch(OUT(out), pitch, width, height, 4))
RT_CALL(cudaMallocManaged, (void **out, size_t n, unsigned flags), D.cuMemAllocManaged(OUT(out), n, flags))
RT_CALL(cudaMemGetInfo, (size_t * available, size_t *total), D.cuMemGetInfo(available, total))

static cudaError_t malloc_3d(cudaPitchedPtr *out, cudaExtent e) {
    CUdeviceptr at = 0;
    cudaError_t error = D.cuMemAllocPitch(&at, &out->pitch, e.width, e.height * e.depth, 4);
    out->ptr = (void *)(uintptr_t)at;
    out->xsize = e.width;
    out->ysize = e.height;
    return error;
}
RT_CALL(cudaMalloc3D, (cudaPitchedPtr * out, cudaExtent e), malloc_3d(out, e))

/* ---- stream-ordered memory, and pools */

RT_STREAM(cudaMallocAsync, (void **out, size_t n, CUstream stream), d->cuMemAllocAsync(OUT(out), n, stream))
RT_STREAM(cudaMallocFromPoolAsync, (void **out, size_t n, CUmemoryPool pool, CUstream stream),
          d->cuMemAllocFromPoolAsync(OUT(out), n, pool, stream))
RT_STREAM(cudaFreeAsync, (void *at, CUstream stream), d->cuMemFreeAsync(P(at), stream))
RT_CALL(cudaDeviceGetDefaultMemPool, (CUmemoryPool * out, int id), D.cuDeviceGetDefaultMemPool(out, id))
RT_CALL(cudaDeviceGetMemPool, (CUmemoryPool * out, int id), D.cuDeviceGetMemPool(out, id))
RT_CALL(cudaDeviceSetMemPool, (int id, CUmemoryPool pool), D.cuDeviceSetMemPool(id, pool))
RT_CALL(cudaMemPoolCreate, (CUmemoryPool * out, const CUmemPoolProps *props), D.cuMemPoolCreate(out, props))
RT_CALL(cudaMemPoolDestroy, (CUmemoryPool pool), D.cuMemPoolDestroy(pool))
RT_CALL(cudaMemPoolTrimTo, (CUmemoryPool pool, size_t keep), D.cuMemPoolTrimTo(pool, keep))
RT_CALL(cudaMemPoolSetAttribute, (CUmemoryPool pool, int which, void *value),
        D.cuMemPoolSetAttribute(pool, which, value))
RT_CALL(cudaMemPoolGetAttribute, (CUmemoryPool pool, int which, void *value),
        D.cuMemPoolGetAttribute(pool, which, value))
RT_CALL(cudaMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t n),
        D.cuMemPoolSetAccess(pool, map, n))
RT_CALL(cudaMemPoolGetAccess, (int *flags, CUmemoryPool pool, CUmemLocation *location),
        D.cuMemPoolGetAccess(flags, pool, location))
RT_CALL(cudaMemPoolExportToShareableHandle, (void *out, CUmemoryPool pool, int type, unsigned flags),
        D.cuMemPoolExportToShareableHandle(out, pool, type, flags))
RT_CALL(cudaMemPoolImportFromShareableHandle, (CUmemoryPool * out, void *handle, int type, unsigned flags),
        D.cuMemPoolImportFromShareableHandle(out, handle, type, flags))
RT_CALL(cudaMemPoolExportPointer, (CUmemPoolPtrExportData * out, void *at), D.cuMemPoolExportPointer(out, P(at)))
RT_CALL(cudaMemPoolImportPointer, (void **out, CUmemoryPool pool, CUmemPoolPtrExportData *data),
        D.cuMemPoolImportPointer(OUT(out), pool, data))
RT_CALL(cudaDeviceGraphMemTrim, (int id), D.cuDeviceGraphMemTrim(id))
RT_CALL(cudaDeviceGetGraphMemAttribute, (int id, int which, void *out), D.cuDeviceGetGraphMemAttribute(id, which, out))

/* ---- arrays */

static CUDA_ARRAY3D_DESCRIPTOR shape(const cudaChannelFormatDesc *c, cudaExtent e, unsigned flags) {
    unsigned channels = (c->x > 0) + (c->y > 0) + (c->z > 0) + (c->w > 0);
    int format = c->f == 2 ? (c->x == 16 ? 0x10 : 0x20) : c->x == 8 ? 1 : c->x == 16 ? 2 : 3;
    return (CUDA_ARRAY3D_DESCRIPTOR){e.width, e.height, e.depth, format, channels, flags};
}

static cudaError_t array(CUarray *out, const cudaChannelFormatDesc *c, cudaExtent e, unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR s = shape(c, e, flags);
    return D.cuArray3DCreate(out, &s);
}
RT_CALL(cudaMallocArray, (CUarray * out, const cudaChannelFormatDesc *c, size_t width, size_t height, unsigned flags),
        array(out, c, ((cudaExtent){width, height, 0}), flags))
RT_CALL(cudaMalloc3DArray, (CUarray * out, const cudaChannelFormatDesc *c, cudaExtent e, unsigned flags),
        array(out, c, e, flags))
RT_CALL(cudaFreeArray, (CUarray at), D.cuArrayDestroy(at))

static cudaError_t mipmap(CUmipmappedArray *out, const cudaChannelFormatDesc *c, cudaExtent e, unsigned levels,
                          unsigned flags) {
    CUDA_ARRAY3D_DESCRIPTOR s = shape(c, e, flags);
    return D.cuMipmappedArrayCreate(out, &s, levels);
}
RT_CALL(cudaMallocMipmappedArray,
        (CUmipmappedArray * out, const cudaChannelFormatDesc *c, cudaExtent e, unsigned levels, unsigned flags),
        mipmap(out, c, e, levels, flags))
RT_CALL(cudaFreeMipmappedArray, (CUmipmappedArray at), D.cuMipmappedArrayDestroy(at))

/* ---- host memory */

RT_CALL(cudaMallocHost, (void **out, size_t n), D.cuMemAllocHost(out, n))
RT_CALL(cudaHostAlloc, (void **out, size_t n, unsigned flags), D.cuMemHostAlloc(out, n, flags))
RT_CALL(cudaFreeHost, (void *at), D.cuMemFreeHost(at))
RT_CALL(cudaHostRegister, (void *at, size_t n, unsigned flags), D.cuMemHostRegister(at, n, flags))
RT_CALL(cudaHostUnregister, (void *at), D.cuMemHostUnregister(at))
RT_CALL(cudaHostGetDevicePointer, (void **out, void *at, unsigned flags),
        D.cuMemHostGetDevicePointer(OUT(out), at, flags))

/* ---- between processes */

RT_CALL(cudaIpcGetMemHandle, (CUipcMemHandle * out, void *at), D.cuIpcGetMemHandle(out, P(at)))
RT_CALL(cudaIpcOpenMemHandle, (void **out, CUipcMemHandle handle, unsigned flags),
        D.cuIpcOpenMemHandle(OUT(out), handle, flags))
RT_CALL(cudaIpcCloseMemHandle, (void *at), D.cuIpcCloseMemHandle(P(at)))

RT_CALL(cudaIpcGetEventHandle, (CUipcMemHandle * out, CUevent event), D.cuIpcGetEventHandle(out, event))
RT_CALL(cudaIpcOpenEventHandle, (CUevent * out, CUipcMemHandle handle), D.cuIpcOpenEventHandle(out, handle))

/* ---- copies and fills */

RT_CALL(cudaMemcpy, (void *to, const void *from, size_t n, int kind), ((void)kind, D.cuMemcpy(P(to), P(from), n)))
RT_API cudaMemcpy_ptds(void *to, const void *from, size_t n, int kind);
RT_API cudaMemcpy_ptds(void *to, const void *from, size_t n, int kind) {
    (void)kind;
    cudaError_t error = rt_enter();
    return rt_leave(error ? error : rt_own.cuMemcpy(P(to), P(from), n));
}
RT_STREAM(cudaMemcpyAsync, (void *to, const void *from, size_t n, int kind, CUstream stream),
          ((void)kind, d->cuMemcpyAsync(P(to), P(from), n, stream)))
RT_CALL(cudaMemset, (void *at, int value, size_t n), D.cuMemsetD8(P(at), (unsigned char)value, n))
RT_STREAM(cudaMemsetAsync, (void *at, int value, size_t n, CUstream stream),
          d->cuMemsetD8Async(P(at), (unsigned char)value, n, stream))

static cudaError_t copy_2d(void *to, size_t dpitch, const void *from, size_t spitch, size_t width, size_t height) {
    CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                       .srcDevice = P(from),
                       .srcPitch = spitch,
                       .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                       .dstDevice = P(to),
                       .dstPitch = dpitch,
                       .WidthInBytes = width,
                       .Height = height};
    return D.cuMemcpy2DUnaligned(&c);
}
RT_CALL(cudaMemcpy2D, (void *to, size_t dpitch, const void *from, size_t spitch, size_t width, size_t height, int kind),
        ((void)kind, copy_2d(to, dpitch, from, spitch, width, height)))

static cudaError_t attributes(cudaPointerAttributes *out, const void *at) {
    unsigned type = 0, managed = 0;
    void *device = NULL, *host = NULL;
    int which[] = {CU_POINTER_MEMORY_TYPE, CU_POINTER_DEVICE_ORDINAL, CU_POINTER_DEVICE_POINTER,
                   CU_POINTER_HOST_POINTER, CU_POINTER_IS_MANAGED};
    int ordinal = -2;
    void *values[] = {&type, &ordinal, &device, &host, &managed};
    cudaError_t error = D.cuPointerGetAttributes(5, which, values, P(at));
    out->type = managed ? 3 : type == CU_MEMORYTYPE_DEVICE ? 2 : type == CU_MEMORYTYPE_HOST ? 1 : 0;
    out->device = ordinal;
    out->devicePointer = device;
    out->hostPointer = host;
    return error;
}
RT_CALL(cudaPointerGetAttributes, (cudaPointerAttributes * out, const void *at), attributes(out, at))
