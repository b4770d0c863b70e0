/* driver_client.h — the work of clients that use the driver interface. The route fills in `cu` and calls driver_work.
 */
#ifndef SIMCUDA_DRIVER_CLIENT_H
#define SIMCUDA_DRIVER_CLIENT_H

#include "workload.h"

/* F(member, base name, exported symbol, oldest version of CUDA that has this symbol, parameters).
 * A route that asks for version 13 finds a cuCtxSynchronize that takes a context (NULL: the current one). The other
 * routes find the older cuCtxSynchronize. It takes no argument, so it ignores the context that it gets. */
#define DRIVER_FUNCTIONS                                                                                               \
    F(init, cuInit, cuInit, 2000, (unsigned))                                                                          \
    F(retain, cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000, (CUcontext *, CUdevice))                       \
    F(set_current, cuCtxSetCurrent, cuCtxSetCurrent, 4000, (CUcontext))                                                \
    F(synchronize, cuCtxSynchronize, cuCtxSynchronize, 2000, (CUcontext))                                              \
    F(alloc, cuMemAlloc, cuMemAlloc_v2, 3020, (CUdeviceptr *, size_t))                                                 \
    F(alloc_pitch, cuMemAllocPitch, cuMemAllocPitch_v2, 3020, (CUdeviceptr *, size_t *, size_t, size_t, unsigned))     \
    F(alloc_managed, cuMemAllocManaged, cuMemAllocManaged, 6000, (CUdeviceptr *, size_t, unsigned))                    \
    F(mem_free, cuMemFree, cuMemFree_v2, 3020, (CUdeviceptr))                                                          \
    F(alloc_async, cuMemAllocAsync, cuMemAllocAsync, 11020, (CUdeviceptr *, size_t, CUstream))                         \
    F(free_async, cuMemFreeAsync, cuMemFreeAsync, 11020, (CUdeviceptr, CUstream))                                      \
    F(alloc_from_pool, cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020,                                        \
      (CUdeviceptr *, size_t, CUmemoryPool, CUstream))                                                                 \
    F(pool_create, cuMemPoolCreate, cuMemPoolCreate, 11020, (CUmemoryPool *, const CUmemPoolProps *))                  \
    F(host_alloc, cuMemHostAlloc, cuMemHostAlloc, 2020, (void **, size_t, unsigned))                                   \
    F(alloc_host, cuMemAllocHost, cuMemAllocHost_v2, 3020, (void **, size_t))                                          \
    F(free_host, cuMemFreeHost, cuMemFreeHost, 2000, (void *))                                                         \
    F(host_register, cuMemHostRegister, cuMemHostRegister_v2, 6050, (void *, size_t, unsigned))                        \
    F(host_unregister, cuMemHostUnregister, cuMemHostUnregister, 4000, (void *))                                       \
    F(array_create, cuArrayCreate, cuArrayCreate_v2, 3020, (CUarray *, const CUDA_ARRAY_DESCRIPTOR *))                 \
    F(array3d_create, cuArray3DCreate, cuArray3DCreate_v2, 3020, (CUarray *, const CUDA_ARRAY3D_DESCRIPTOR *))         \
    F(mipmap_create, cuMipmappedArrayCreate, cuMipmappedArrayCreate, 5000,                                             \
      (CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned))                                                 \
    F(reserve, cuMemAddressReserve, cuMemAddressReserve, 10020,                                                        \
      (CUdeviceptr *, size_t, size_t, CUdeviceptr, uint64_t))                                                          \
    F(create, cuMemCreate, cuMemCreate, 10020,                                                                         \
      (CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, uint64_t))                                 \
    F(map, cuMemMap, cuMemMap, 10020, (CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, uint64_t))           \
    F(set_access, cuMemSetAccess, cuMemSetAccess, 10020, (CUdeviceptr, size_t, const CUmemAccessDesc *, size_t))       \
    F(unmap, cuMemUnmap, cuMemUnmap, 10020, (CUdeviceptr, size_t))                                                     \
    F(release, cuMemRelease, cuMemRelease, 10020, (CUmemGenericAllocationHandle))                                      \
    F(memcpy_to, cuMemcpyHtoD, cuMemcpyHtoD_v2, 3020, (CUdeviceptr, const void *, size_t))                             \
    F(memcpy_from, cuMemcpyDtoH, cuMemcpyDtoH_v2, 3020, (void *, CUdeviceptr, size_t))

static struct {
#define F(member, name, symbol, version, parameters) CUresult(*member) parameters;
    DRIVER_FUNCTIONS
#undef F
} cu;

/* Bytes that are written to the device come back unchanged. */
static inline void driver_round_trip(CUdeviceptr at, size_t bytes) {
    char *out = malloc(bytes), *back = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) out[i] = (char)(i * 7 + at / 512);
    CHECK(cu.memcpy_to(at, out, bytes));
    CHECK(cu.memcpy_from(back, at, bytes));
    if (memcmp(out, back, bytes)) check(-1, "the data came back changed");
    free(out);
    free(back);
}

static inline CUdeviceptr driver_map(size_t bytes) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    CHECK(cu.reserve(&at, bytes, 0, 0, 0));
    CHECK(cu.create(&handle, bytes, &prop, 0));
    CHECK(cu.map(at, bytes, 0, handle, 0));
    CHECK(cu.set_access(at, bytes, &access, 1));
    CHECK(cu.release(handle));
    return at;
}

static inline void driver_plain(void) {
    CUdeviceptr at, gone;
    size_t pitch;
    CHECK(cu.alloc(&at, 3 << 20));
    driver_round_trip(at, 3 << 20);
    workload_note("device", 3 << 20);
    CHECK(cu.alloc(&gone, 5 << 20));
    CHECK(cu.mem_free(gone));
    CHECK(cu.alloc(&at, 1000));
    workload_note("device", 1000);
    CHECK(cu.alloc_pitch(&at, &pitch, 1000, 10, 4));
    workload_note("device", pitch * 10);
    CHECK(cu.alloc_managed(&at, 4 << 20, 1));
    memset((void *)at, 1, 100); /* the host sees it */
    workload_note("managed", 4 << 20);
}

static inline void driver_pools(void) {
    CUdeviceptr at;
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CHECK(cu.alloc_async(&at, 6 << 20, NULL));
    driver_round_trip(at, 6 << 20);
    workload_note("pool", 6 << 20);
    CHECK(cu.alloc_async(&at, 7 << 20, NULL));
    CHECK(cu.free_async(at, NULL));
    CHECK(cu.pool_create(&pool, &props));
    CHECK(cu.alloc_from_pool(&at, 12345, pool, NULL));
    workload_note("pool", 12345);
}

static inline void driver_host(void) {
    void *at, *own = aligned_alloc(4096, 1 << 20);
    CHECK(cu.host_alloc(&at, 2 << 20, 0));
    memset(at, 1, 2 << 20);
    workload_note("pinned", 2 << 20);
    CHECK(cu.alloc_host(&at, 4096));
    workload_note("pinned", 4096);
    CHECK(cu.host_alloc(&at, 8 << 20, 0));
    CHECK(cu.free_host(at));
    CHECK(cu.host_register(own, 1 << 20, 0));
    workload_note("registered", 1 << 20);
}

static inline void driver_arrays(void) {
    CUDA_ARRAY_DESCRIPTOR flat = {640, 480, 0x20, 4};
    CUDA_ARRAY3D_DESCRIPTOR deep = {64, 64, 16, 0x20, 1, 0}, mip = {128, 128, 0, 0x20, 4, 0};
    CUarray array;
    CUmipmappedArray mipmap;
    CHECK(cu.array_create(&array, &flat));
    CHECK(cu.array3d_create(&array, &deep));
    CHECK(cu.mipmap_create(&mipmap, &mip, 3));
    workload_note("array", 640 * 480 * 16);
    workload_note("array", 64 * 64 * 16 * 4);
    workload_note("array", (128 * 128 + 64 * 64 + 32 * 32) * 16);
}

static inline void *driver_in_thread(void *context) {
    CUdeviceptr at;
    CHECK(cu.set_current(context));
    for (int i = 0; i < 20; i++) {
        CHECK(cu.alloc_async(&at, 1 << 20, CU_STREAM_PER_THREAD));
        if (i % 4) CHECK(cu.free_async(at, CU_STREAM_PER_THREAD));
    }
    CHECK(cu.synchronize(NULL));
    return NULL;
}

static inline void driver_work(void) {
    CUcontext context;
    pthread_t threads[4];
    CHECK(cu.init(0));
    CHECK(cu.retain(&context, 0));
    CHECK(cu.set_current(context));
    driver_plain();
    driver_pools();
    driver_host();
    driver_arrays();
    driver_round_trip(driver_map(4 << 20), 4 << 20);
    workload_note("vmm", 4 << 20);
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, driver_in_thread, context);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 20; i++) workload_note("pool", 1 << 20);
    CHECK(cu.synchronize(NULL));
    workload_print();
}

#endif
