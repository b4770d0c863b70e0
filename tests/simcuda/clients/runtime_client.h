/* runtime_client.h — the work of clients that use the runtime interface. The route fills in `rt` and calls
 * runtime_work. */
#ifndef SIMCUDA_RUNTIME_CLIENT_H
#define SIMCUDA_RUNTIME_CLIENT_H

#include "workload.h"

typedef struct {
    void *ptr;
    size_t pitch, xsize, ysize;
} pitched_pointer;
typedef struct {
    size_t width, height, depth;
} extent3;
typedef struct {
    int x, y, z, w, f;
} channels;

#define RUNTIME_FUNCTIONS                                                                                              \
    F(cudaMalloc, (void **, size_t))                                                                                   \
    F(cudaFree, (void *))                                                                                              \
    F(cudaMallocPitch, (void **, size_t *, size_t, size_t))                                                            \
    F(cudaMalloc3D, (pitched_pointer *, extent3))                                                                      \
    F(cudaMallocManaged, (void **, size_t, unsigned))                                                                  \
    F(cudaMallocAsync, (void **, size_t, CUstream))                                                                    \
    F(cudaMallocAsync_ptsz, (void **, size_t, CUstream))                                                               \
    F(cudaMallocFromPoolAsync, (void **, size_t, CUmemoryPool, CUstream))                                              \
    F(cudaFreeAsync, (void *, CUstream))                                                                               \
    F(cudaFreeAsync_ptsz, (void *, CUstream))                                                                          \
    F(cudaMemPoolCreate, (CUmemoryPool *, const CUmemPoolProps *))                                                     \
    F(cudaMallocHost, (void **, size_t))                                                                               \
    F(cudaHostAlloc, (void **, size_t, unsigned))                                                                      \
    F(cudaFreeHost, (void *))                                                                                          \
    F(cudaHostRegister, (void *, size_t, unsigned))                                                                    \
    F(cudaMallocArray, (CUarray *, const channels *, size_t, size_t, unsigned))                                        \
    F(cudaMalloc3DArray, (CUarray *, const channels *, extent3, unsigned))                                             \
    F(cudaMallocMipmappedArray, (CUmipmappedArray *, const channels *, extent3, unsigned, unsigned))                   \
    F(cudaMemcpy, (void *, const void *, size_t, int))                                                                 \
    F(cudaDeviceSynchronize, (void))

static struct {
#define F(name, parameters) int(*name) parameters;
    RUNTIME_FUNCTIONS
#undef F
} rt;

static inline void runtime_round_trip(void *at, size_t bytes) {
    char *out = malloc(bytes), *back = malloc(bytes);
    for (size_t i = 0; i < bytes; i++) out[i] = (char)(i * 5 + (uintptr_t)at / 512);
    CHECK(rt.cudaMemcpy(at, out, bytes, 1));
    CHECK(rt.cudaMemcpy(back, at, bytes, 2));
    if (memcmp(out, back, bytes)) check(-1, "the data came back changed");
    free(out);
    free(back);
}

static inline void runtime_plain(void) {
    void *at;
    size_t pitch;
    pitched_pointer box;
    CHECK(rt.cudaMalloc(&at, 3 << 20));
    runtime_round_trip(at, 3 << 20);
    workload_note("device", 3 << 20);
    CHECK(rt.cudaMalloc(&at, 5 << 20));
    CHECK(rt.cudaFree(at));
    CHECK(rt.cudaMallocPitch(&at, &pitch, 1000, 10));
    workload_note("device", pitch * 10);
    CHECK(rt.cudaMalloc3D(&box, (extent3){1000, 10, 4}));
    workload_note("device", box.pitch * 40);
    CHECK(rt.cudaMallocManaged(&at, 4 << 20, 1));
    workload_note("managed", 4 << 20);
}

static inline void runtime_pools(void) {
    void *at;
    CUmemoryPool pool;
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CHECK(rt.cudaMallocAsync(&at, 6 << 20, NULL));
    runtime_round_trip(at, 6 << 20);
    workload_note("pool", 6 << 20);
    CHECK(rt.cudaMallocAsync_ptsz(&at, 7 << 20, NULL));
    CHECK(rt.cudaFreeAsync_ptsz(at, NULL));
    CHECK(rt.cudaMemPoolCreate(&pool, &props));
    CHECK(rt.cudaMallocFromPoolAsync(&at, 12345, pool, NULL));
    workload_note("pool", 12345);
}

static inline void runtime_host(void) {
    void *at, *own = aligned_alloc(4096, 1 << 20);
    CHECK(rt.cudaHostAlloc(&at, 2 << 20, 0));
    workload_note("pinned", 2 << 20);
    CHECK(rt.cudaMallocHost(&at, 4096));
    workload_note("pinned", 4096);
    CHECK(rt.cudaHostAlloc(&at, 8 << 20, 0));
    CHECK(rt.cudaFreeHost(at));
    CHECK(rt.cudaHostRegister(own, 1 << 20, 0));
    workload_note("registered", 1 << 20);
}

static inline void runtime_arrays(void) {
    channels four = {32, 32, 32, 32, 2}, one = {32, 0, 0, 0, 2};
    CUarray array;
    CUmipmappedArray mipmap;
    CHECK(rt.cudaMallocArray(&array, &four, 640, 480, 0));
    CHECK(rt.cudaMalloc3DArray(&array, &one, (extent3){64, 64, 16}, 0));
    CHECK(rt.cudaMallocMipmappedArray(&mipmap, &four, (extent3){128, 128, 0}, 3, 0));
    workload_note("array", 640 * 480 * 16);
    workload_note("array", 64 * 64 * 16 * 4);
    workload_note("array", (128 * 128 + 64 * 64 + 32 * 32) * 16);
}

static inline void *runtime_in_thread(void *unused) {
    void *at;
    for (int i = 0; i < 20; i++) {
        CHECK(rt.cudaMallocAsync(&at, 1 << 20, CU_STREAM_PER_THREAD));
        if (i % 4) CHECK(rt.cudaFreeAsync(at, CU_STREAM_PER_THREAD));
    }
    return unused;
}

static inline void runtime_work(void) {
    pthread_t threads[4];
    runtime_plain();
    runtime_pools();
    runtime_host();
    runtime_arrays();
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, runtime_in_thread, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 20; i++) workload_note("pool", 1 << 20);
    CHECK(rt.cudaDeviceSynchronize());
    workload_print();
}

#endif
