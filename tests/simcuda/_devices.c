/* _devices.c — a program whose models are on several devices, over the simulated driver (a test double). The first
 * argument is the case. A failed check ends the program with a message. devices.py runs the program. */
#include "_model.h"

int cudaDeviceEnablePeerAccess(int, unsigned);

static uint32_t model;

static void begin(void) {
    model = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, "unet", "unet.safetensors", 1, 0);
    MUST(!memstow_owner_idle_(model, 1));
}

/* Allocates in the model's scope, on a device; the thread stays on that device. */
static void *plain_on(int device, size_t bytes) {
    void *at;
    MUST(!cudaSetDevice(device) && !memstow_scope_enter_(model) && !cudaMalloc(&at, bytes));
    MUST(!memstow_scope_leave_(model));
    return at;
}

static void *pooled_on(int device, size_t bytes) {
    void *at;
    MUST(!cudaSetDevice(device) && !memstow_scope_enter_(model) && !cudaMallocAsync(&at, bytes, NULL));
    MUST(!memstow_scope_leave_(model));
    return at;
}

/* Fills memory through its own device; the thread stays on that device. */
static void fill_on(int device, void *at, size_t bytes, uint32_t seed) {
    MUST(!cudaSetDevice(device));
    fill(at, bytes, seed);
}

static int holds_on(int device, void *at, size_t bytes, uint32_t seed) {
    MUST(!cudaSetDevice(device));
    return holds(at, bytes, seed);
}

/* A kernel on the thread's device reads all of the memory. Returns 0, or the error that breaks the context. */
static int touch(void *at, size_t bytes) {
    CUmodule module;
    CUfunction function;
    uint64_t address = (uint64_t)(uintptr_t)at, length = bytes;
    void *arguments[] = {&address, &length};
    MUST(!cuModuleLoadData(&module, "") && !cuModuleGetFunction(&function, module, "sim_touch"));
    MUST(!cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, arguments, NULL));
    return cuCtxSynchronize();
}

static int access_of(int device, void *at) {
    CUmemLocation location = {CU_MEM_LOCATION_DEVICE, device};
    unsigned long long flags = 99;
    MUST(!cuMemGetAccess(&flags, &location, (CUdeviceptr)at));
    return (int)flags;
}

/* Whether the figures have these bytes of the model on devices 0 and 1, and none on other devices. */
static int is_on(size_t first, size_t second) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(!memstow_owner_figures_(model, &figures));
    for (int i = 2; i < MEMSTOW_DEVICES; i++) MUST(!figures.on_device_bytes[i]);
    return figures.on_device_bytes[0] == first && figures.on_device_bytes[1] == second;
}

static void out(size_t bytes) { MUST(memstow_stow_(model) == (int64_t)bytes); }
static void back(size_t bytes) { MUST(memstow_restore_(model) == (int64_t)bytes); }

/* --- each to its own */

/* There are primary contexts of two devices, and a context that the program made. Each block goes back to its own
 * device and context, and the pinned buffers change contexts as seldom as possible. The figures say how much is on each
 * device. */
static void each_to_its_own(void) {
    CUcontext made, now;
    void *first = plain_on(0, 8 * MIB), *second = plain_on(1, 6 * MIB), *pooled = pooled_on(1, 4 * MIB), *third, *more;
    MUST(!cuCtxCreate_v2(&made, 0, 1) && !memstow_scope_enter_(model) &&
         !cuMemAlloc_v2((CUdeviceptr *)&third, 10 * MIB));
    MUST(!memstow_scope_leave_(model));
    more = plain_on(0, 2 * MIB);
    fill_on(0, first, 8 * MIB, 1);
    fill_on(1, second, 6 * MIB, 2);
    fill_on(1, pooled, 4 * MIB, 3);
    fill_on(1, third, 10 * MIB, 4);
    fill_on(0, more, 2 * MIB, 5);
    uint64_t used[2] = {usage_of(0).used, usage_of(1).used};
    MUST(!cudaSetDevice(0) && !cuCtxGetCurrent(&now));
    sim_count_reset();
    MUST(is_on(10 * MIB, 20 * MIB));
    out(30 * MIB);
    MUST(is_on(0, 0));
    MUST(usage_of(0).used == used[0] - 10 * MIB && usage_of(1).used == used[1] - 20 * MIB);
    MUST(sim_count("cuMemHostAlloc") == 3 * buffers());
    CUcontext after;
    MUST(!cuCtxGetCurrent(&after) && after == now);
    sim_count_reset();
    back(30 * MIB);
    MUST(is_on(10 * MIB, 20 * MIB));
    MUST(usage_of(0).used == used[0] && usage_of(1).used == used[1]);
    MUST(sim_count("cuMemHostAlloc") == 2 * 4); /* back begins in the context in which out ended */
    MUST(!cuCtxGetCurrent(&after) && after == now);
    MUST(holds_on(0, first, 8 * MIB, 1) && holds_on(1, second, 6 * MIB, 2) && holds_on(1, pooled, 4 * MIB, 3));
    MUST(holds_on(1, third, 10 * MIB, 4) && holds_on(0, more, 2 * MIB, 5));
    MUST(!cuCtxDestroy_v2(made) &&
         usage_of(1).used == used[1] - 10 * MIB - usage_of(0).contexts); /* its own context ends with it */
    MUST(holds_on(1, second, 6 * MIB, 2) && !cudaFree(second) && !cudaFree(first) && !cudaFree(more));
    MUST(!cudaFreeAsync(pooled, NULL) && !usage_of(0).faults);
}

/* Memory belongs to the stream's device, whichever device the thread is on. */
static void stream_of_another(void) {
    CUstream stream;
    void *at;
    MUST(!cudaSetDevice(1) && !cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    plain_on(0, 2 * MIB);
    uint64_t used[2] = {usage_of(0).used, usage_of(1).used}, served = sim_count_ok("cuMemCreate");
    MUST(!memstow_scope_enter_(model) && !cudaMallocAsync(&at, 4 * MIB, stream) && !memstow_scope_leave_(model));
    MUST(sim_count_ok("cuMemCreate") == served + 1);
    MUST(usage_of(0).used == used[0] && usage_of(1).used == used[1] + 4 * MIB);
    out(6 * MIB);
    back(6 * MIB);
    MUST(usage_of(0).used == used[0] && usage_of(1).used == used[1] + 4 * MIB);
    MUST(!cudaFreeAsync(at, stream) && !cuStreamSynchronize(stream));
}

/* Free memory and the figures of pools are separate for each device. */
static void figures(void) {
    size_t available, total, before, all;
    uint64_t used;
    CUmemoryPool pool;
    pooled_on(0, 4 * MIB);
    pooled_on(1, 6 * MIB);
    MUST(!cudaSetDevice(1) && !cudaMemGetInfo(&before, &all));
    out(10 * MIB);
    MUST(!cudaMemGetInfo(&available, &total) && available == before + 6 * MIB && total == all + 6 * MIB);
    for (int device = 0; device < 2; device++) {
        MUST(!cuDeviceGetDefaultMemPool(&pool, device) && !cuMemPoolGetAttribute(pool, CU_POOL_USED, &used));
        MUST(used == (device ? 6 : 4) * MIB);
        MUST(!cuMemPoolGetAttribute(pool, CU_POOL_USED_HIGH, &used) && used == (device ? 6 : 4) * MIB);
    }
    back(10 * MIB);
}

/* One device is reset. Memory that cudaMalloc gave on this device is gone, also if memstow served it. Memory of the
 * device's pool and memory of other devices stay. */
static void reset_of_one(void) {
    void *first = plain_on(0, 8 * MIB), *second = plain_on(1, 6 * MIB), *pooled = pooled_on(1, 4 * MIB);
    fill_on(0, first, 8 * MIB, 1);
    fill_on(1, second, 6 * MIB, 2);
    fill_on(1, pooled, 4 * MIB, 3);
    out(18 * MIB);
    MUST(!cudaSetDevice(1) && !cudaDeviceReset());
    back(12 * MIB);
    MUST(holds_on(0, first, 8 * MIB, 1) && holds_on(1, pooled, 4 * MIB, 3) && cudaFree(second) == 1);
    MUST(!cudaFreeAsync(pooled, NULL) && !cudaDeviceSynchronize() && !cudaFree(first));
}

/* Memory that is served in place of a pool's memory outlives the context in which it was requested. When this context
 * ends, another context of the device gets the memory. */
static void heir_on_its_device(void) {
    CUcontext made;
    void *pooled;
    plain_on(0, 2 * MIB);
    MUST(!cudaSetDevice(1) && !cudaDeviceSynchronize() && !cuCtxCreate_v2(&made, 0, 1));
    MUST(!memstow_scope_enter_(model) && !cuMemAllocAsync((CUdeviceptr *)&pooled, 4 * MIB, NULL));
    MUST(!memstow_scope_leave_(model));
    fill_on(1, pooled, 4 * MIB, 3);
    MUST(!cuCtxDestroy_v2(made) && !cudaSetDevice(0));
    sim_count_reset();
    out(6 * MIB);
    back(6 * MIB);
    MUST(holds_on(1, pooled, 4 * MIB, 3) && !cudaSetDevice(1) && !touch(pooled, 4 * MIB) && !usage_of(1).faults);
}

/* --- other devices */

static void peer_before(void) {
    void *at = plain_on(0, 4 * MIB);
    fill_on(0, at, 4 * MIB, 1);
    MUST(!cudaSetDevice(1) && !cudaDeviceEnablePeerAccess(0, 0));
    MUST(!touch(at, 4 * MIB));
    out(4 * MIB);
    back(4 * MIB);
    MUST(!touch(at, 4 * MIB) && access_of(1, at) == CU_MEM_ACCESS_READWRITE && holds_on(0, at, 4 * MIB, 1));
}

/* The other device gets access while the memory is out. */
static void peer_while_out(void) {
    void *at = plain_on(0, 4 * MIB);
    out(4 * MIB);
    MUST(!cudaSetDevice(1) && !cudaDeviceEnablePeerAccess(0, 0));
    back(4 * MIB);
    MUST(!touch(at, 4 * MIB));
}

/* Any device can take part in a copy of cudaMalloc's memory, also a device that the program uses only after the
 * allocation. */
static void copied_without_asking(void) {
    void *at = plain_on(0, 4 * MIB), *other;
    fill_on(0, at, 4 * MIB, 1);
    MUST(!cudaSetDevice(1) && !cudaMalloc(&other, 4 * MIB));
    MUST(!cudaMemcpy(other, at, 4 * MIB, 3) && holds_on(1, other, 4 * MIB, 1));
    out(4 * MIB);
    back(4 * MIB);
    MUST(!cudaMemcpy(other, at, 4 * MIB, 3) && holds_on(1, other, 4 * MIB, 1) && !usage_of(0).faults);
}

/* At first, only the pool's own device can use memory of the pool. The program gives another device access, and later
 * takes this access away again. */
static void pool_access(void) {
    void *at = pooled_on(0, 4 * MIB);
    CUmemoryPool pool;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_DEVICE, 1}, CU_MEM_ACCESS_READWRITE};
    MUST(!cudaSetDevice(1) && !cudaDeviceEnablePeerAccess(0, 0) && access_of(1, at) == 0); /* for cudaMalloc only */
    MUST(!cuDeviceGetDefaultMemPool(&pool, 0) && !cuMemPoolSetAccess(pool, &access, 1));
    MUST(!touch(at, 4 * MIB));
    out(4 * MIB);
    access.flags = CU_MEM_ACCESS_NONE;
    MUST(!cuMemPoolSetAccess(pool, &access, 1));
    back(4 * MIB);
    MUST(access_of(1, at) == 0 && access_of(0, at) == CU_MEM_ACCESS_READWRITE);
    access.flags = CU_MEM_ACCESS_READWRITE;
    MUST(!cuMemPoolSetAccess(pool, &access, 1) && !touch(at, 4 * MIB));
    access.flags = CU_MEM_ACCESS_NONE;
    MUST(!cuMemPoolSetAccess(pool, &access, 1) && access_of(1, at) == 0);
    void *next = pooled_on(0, 2 * MIB);
    MUST(access_of(1, next) == 0 && touch(next, 2 * MIB) == 0);
}

/* Does the same as pool_access after comfy-aimdo has been loaded. From then on, memstow serves no more memory. Memory
 * that was served before stays served. */
static void access_beside_aimdo(void) {
    void *at = pooled_on(0, 4 * MIB), *plain = plain_on(0, 2 * MIB);
    CUmemoryPool pool;
    CUmemAccessDesc access = {{CU_MEM_LOCATION_DEVICE, 1}, CU_MEM_ACCESS_READWRITE};
    uint64_t served = sim_count_ok("cuMemCreate");
    MUST(dlopen("./aimdo.so", RTLD_NOW | RTLD_GLOBAL));
    pooled_on(0, 4 * MIB);
    MUST(sim_count_ok("cuMemCreate") == served);
    MUST(!cuDeviceGetDefaultMemPool(&pool, 0) && !cuMemPoolSetAccess(pool, &access, 1));
    MUST(!cudaSetDevice(1) && !cudaDeviceEnablePeerAccess(0, 0) && !touch(plain, 2 * MIB) && !touch(at, 4 * MIB));
}

/* The driver fails to give a device access to served memory. The program gets the error, and can ask again. */
static void access_fails(void) {
    void *at = plain_on(0, 4 * MIB);
    sim_fail("cuMemSetAccess", 1, CUDA_ERROR_OPERATING_SYSTEM, 2);
    MUST(!cudaSetDevice(1));
    MUST(cudaDeviceEnablePeerAccess(0, 0) == CUDA_ERROR_OPERATING_SYSTEM);
    MUST(!cudaDeviceEnablePeerAccess(0, 0)); /* and not 704 */
    MUST(!touch(at, 4 * MIB));
}

/* SIMCUDA_PEERS=0: memory of cudaMalloc is left to the driver, which copies it through the host. Memory of pools is
 * served. */
static void no_peers(void) {
    void *at = plain_on(0, 4 * MIB), *pooled = pooled_on(1, 6 * MIB), *other;
    MUST(!cudaSetDevice(1) && !cudaMalloc(&other, 4 * MIB));
    fill_on(0, at, 4 * MIB, 1);
    fill_on(1, pooled, 6 * MIB, 2);
    MUST(!cudaMemcpy(other, at, 4 * MIB, 3) && holds_on(1, other, 4 * MIB, 1));
    out(6 * MIB);
    back(6 * MIB);
    MUST(holds_on(1, pooled, 6 * MIB, 2));
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"each_to_its_own", each_to_its_own},
                                              {"stream_of_another", stream_of_another},
                                              {"figures", figures},
                                              {"reset_of_one", reset_of_one},
                                              {"heir_on_its_device", heir_on_its_device},
                                              {"peer_before", peer_before},
                                              {"peer_while_out", peer_while_out},
                                              {"copied_without_asking", copied_without_asking},
                                              {"pool_access", pool_access},
                                              {"access_beside_aimdo", access_beside_aimdo},
                                              {"access_fails", access_fails},
                                              {"no_peers", no_peers}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, begin);
}
