/* Random allocations and frees of every kind from several threads, with errors of the driver in between. The report
 * must agree with what the program knows it holds. Over the simulated driver, a test double. */
#include "expect.h"

#include <pthread.h>

#include "simcuda.h"

#include "cuda_abi.h"

int cuInit(unsigned);
int cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
int cuCtxSetCurrent(CUcontext);
int cuStreamCreate(CUstream *, unsigned);
int cuMemAlloc_v2(CUdeviceptr *, size_t);
int cuMemFree_v2(CUdeviceptr);
int cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
int cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
int cuMemFreeAsync(CUdeviceptr, CUstream);
int cuMemHostAlloc(void **, size_t, unsigned);
int cuMemFreeHost(void *);
int cuArrayCreate_v2(CUarray *, const CUDA_ARRAY_DESCRIPTOR *);
int cuArrayDestroy(CUarray);
int cuMemCreate(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long);
int cuMemRelease(CUmemGenericAllocationHandle);
int cudaMalloc(void **, size_t);
int cudaFree(void *);

enum { THREADS = 4, SLOTS = 60, INJECT_EVERY = 50 };
enum kind { DEVICE, RUNTIME, MANAGED, POOL, PINNED, ARRAY, PHYSICAL, KINDS };

struct held {
    uint64_t number, bytes;
    enum kind kind;
};

static CUcontext context;
static int steps = 3000;
static uint64_t bytes_of[KINDS], blocks_of[KINDS];

static int allocate(struct held *held, CUstream stream) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUDA_ARRAY_DESCRIPTOR flat = {held->bytes / 4, 0, 0x20, 1};
    switch (held->kind) {
    case DEVICE:
        return cuMemAlloc_v2(&held->number, held->bytes);
    case RUNTIME:
        return cudaMalloc((void **)&held->number, held->bytes);
    case MANAGED:
        return cuMemAllocManaged(&held->number, held->bytes, 1);
    case POOL:
        return cuMemAllocAsync(&held->number, held->bytes, stream);
    case PINNED:
        return cuMemHostAlloc((void **)&held->number, held->bytes, 0);
    case ARRAY:
        return cuArrayCreate_v2((CUarray *)&held->number, &flat);
    default:
        held->bytes = (size_t)2 << 20;
        return cuMemCreate(&held->number, held->bytes, &prop, 0);
    }
}

static int let_go(const struct held *held, CUstream stream) {
    switch (held->kind) {
    case RUNTIME:
        return cudaFree((void *)held->number);
    case POOL:
        return held->bytes % 8 ? cuMemFreeAsync(held->number, stream) : cuMemFree_v2(held->number);
    case PINNED:
        return cuMemFreeHost((void *)held->number);
    case ARRAY:
        return cuArrayDestroy((CUarray)held->number);
    case PHYSICAL:
        return cuMemRelease(held->number);
    default:
        return cuMemFree_v2(held->number);
    }
}

static pthread_barrier_t begun;

static void *churn(void *argument) {
    struct held held[SLOTS] = {0};
    unsigned seed = (unsigned)(uintptr_t)argument;
    CUstream stream;
    MUST(!cuCtxSetCurrent(context) && !cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    pthread_barrier_wait(&begun); /* errors hit whichever thread calls next, so all threads must have their streams */
    for (int i = 0; i < steps; i++) {
        struct held *slot = &held[rand_r(&seed) % SLOTS];
        if (rand_r(&seed) % INJECT_EVERY == 0) sim_fail("*", 1 + rand_r(&seed) % 3, rand_r(&seed) % 2 ? 999 : 2, 1);
        if (slot->bytes) {
            if (let_go(slot, stream) == 0) slot->bytes = 0; /* otherwise it stays */
        } else {
            *slot =
                (struct held){.kind = (enum kind)(rand_r(&seed) % KINDS), .bytes = 4 + rand_r(&seed) % 40000 / 4 * 4};
            if (allocate(slot, stream)) slot->bytes = 0;
        }
    }
    for (int i = 0; i < SLOTS; i++) {
        if (!held[i].bytes) continue;
        __atomic_fetch_add(&bytes_of[held[i].kind], held[i].bytes, __ATOMIC_RELAXED);
        __atomic_fetch_add(&blocks_of[held[i].kind], 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void expect(const char *name, uint64_t bytes, uint64_t blocks) {
    say("expect cuda.kinds.%s.live_bytes == %llu", name, (unsigned long long)bytes);
    say("expect cuda.kinds.%s.live_blocks == %llu", name, (unsigned long long)blocks);
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    unsigned seed = count > 1 ? (unsigned)atoi(arguments[1]) : 1;
    if (count > 2) steps = atoi(arguments[2]);
    MUST(!cuInit(0) && !cuDevicePrimaryCtxRetain(&context, 0));
    pthread_barrier_init(&begun, NULL, THREADS);
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, churn, (void *)(seed * 100 + i));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    expect("device", bytes_of[DEVICE] + bytes_of[RUNTIME], blocks_of[DEVICE] + blocks_of[RUNTIME]);
    expect("managed", bytes_of[MANAGED], blocks_of[MANAGED]);
    expect("pool", bytes_of[POOL], blocks_of[POOL]);
    expect("pinned", bytes_of[PINNED], blocks_of[PINNED]);
    expect("array", bytes_of[ARRAY], blocks_of[ARRAY]);
    expect("vmm", bytes_of[PHYSICAL], blocks_of[PHYSICAL]);
    EXPECT("cuda.foreign_frees", 0);
    EXPECT("cuda.missed_frees", 0);
    return 0;
}
