/* _spares.c — a program that allocates and frees device memory in a model's scope, again and again; over the simulated
 * driver (a test double). The first argument is the case. The program prints lines for spares.py. A failed check ends
 * the program with a message. */
#include "_model.h"

enum { MANY = 1000 };
static uint32_t model;

static void begin(void) {
    model = model_open("unet").owner;
    MUST(!memstow_scope_enter_(model));
    MUST(!cudaFree(NULL)); /* there is a context from now on */
}

static void leave(void) { MUST(!memstow_scope_leave_(model)); }

/* Calls about physical memory so far. */
static uint64_t physical_calls(void) {
    static const char *const names[] = {"cuMemAddressReserve", "cuMemCreate",  "cuMemMap",        "cuMemSetAccess",
                                        "cuMemUnmap",          "cuMemRelease", "cuMemAddressFree"};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) sum += sim_count_ok(names[i]);
    return sum;
}

static void *ask(size_t bytes, CUstream stream) {
    void *at;
    MUST(!cudaMallocAsync(&at, bytes, stream));
    return at;
}

static void give(void *at, CUstream stream) { MUST(!cudaFreeAsync(at, stream)); }

static CUstream stream_new(void) {
    CUstream stream;
    MUST(!cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static void say_calls(uint64_t before) { printf("calls %llu\n", (unsigned long long)(physical_calls() - before)); }

/* --- what a temporary block costs */

static void in_a_stream(void) {
    begin();
    uint64_t before = physical_calls();
    for (int i = 0; i < MANY; i++) give(ask(3 * MIB, NULL), NULL);
    say_calls(before);
}

static void of_cuda_malloc(void) {
    void *at;
    begin();
    uint64_t before = physical_calls();
    for (int i = 0; i < MANY; i++) MUST(!cudaMalloc(&at, 3 * MIB) && !cudaFree(at));
    say_calls(before);
}

static void of_several_sizes(void) {
    static const size_t sizes[] = {2 * MIB, 5 * MIB, 9 * MIB, 2 * MIB + 4096};
    void *at[4];
    begin();
    uint64_t before = physical_calls();
    for (int i = 0; i < MANY / 4; i++) {
        for (int k = 0; k < 4; k++) at[k] = ask(sizes[k], NULL);
        for (int k = 4; k--;) give(at[k], NULL);
    }
    say_calls(before);
}

/* The device is far behind the program: it still has to use all memory that was freed. */
static void behind(void) {
    CUstream stream;
    begin();
    stream = stream_new();
    sim_hold(1);
    uint64_t before = physical_calls();
    for (int i = 0; i < MANY; i++) {
        void *at = ask(3 * MIB, stream);
        MUST(!cuMemsetD32Async((CUdeviceptr)at, (unsigned)i, 16, stream));
        give(at, stream);
    }
    say_calls(before);
    sim_hold(-1);
    MUST(!cudaDeviceSynchronize() && !usage().faults);
}

/* --- whose memory it is */

/* A freed block is not used again while work on another stream may still use it. */
static void other_streams(void) {
    begin();
    CUstream first = stream_new(), second = stream_new();
    launch_endless(first);
    void *at = ask(3 * MIB, first), *other;
    give(at, first);
    MUST((other = ask(3 * MIB, second)) != at);
    MUST(ask(3 * MIB, NULL) != at);
    /* The stream that freed the block would not have to wait, because its next work comes after the block's last use.
     * But memstow knows a stream only by its handle, and a new stream may have the handle of a destroyed stream. So
     * memstow makes the stream wait. */
    uint64_t waits = sim_count_ok("cuStreamWaitEvent");
    MUST(ask(3 * MIB, first) == at && sim_count_ok("cuStreamWaitEvent") == waits + 1);
    sim_release_kernels(1);
    MUST(!cudaDeviceSynchronize());
    give(other, second);
    MUST(!cudaDeviceSynchronize());
    MUST(ask(3 * MIB, first) == other); /* unused by now */
}

/* A freed block does not become a spare if the program has asked for its handle, or if it was freed outside of its
 * owner's scope. */
static void not_kept(void) {
    CUmemGenericAllocationHandle handle;
    begin();
    uint64_t used = usage().used;
    void *known = ask(3 * MIB, NULL), *outside = ask(5 * MIB, NULL);
    MUST(!cuMemRetainAllocationHandle(&handle, known) && !cuMemRelease(handle));
    MUST(!cudaFree(known) && usage().used == used + 6 * MIB);
    uint32_t other = model_open("other").owner;
    MUST(!memstow_scope_enter_(other) && !cudaFree(outside) && !memstow_scope_leave_(other));
    MUST(usage().used == used);
    outside = ask(5 * MIB, NULL);
    leave();
    MUST(!cudaFree(outside) && usage().used == used && !usage().reserved_va);
}

/* Two threads allocate and free blocks at random, each on three streams. Blocks that are alive at the same time never
 * share memory. */
static uint32_t below(uint32_t *state, uint32_t n) {
    *state = *state * 1103515245u + 12345u;
    return (*state >> 8) % n;
}

static void check(void *at, uint32_t word, CUstream stream) {
    uint32_t has[4];
    MUST(!cuMemcpyDtoHAsync_v2(has, (CUdeviceptr)at, sizeof has, stream) && !cuStreamSynchronize(stream));
    MUST(has[0] == word && has[3] == word);
}

static void *use_at_random(void *context) {
    enum { SLOTS = 8, STEPS = 1500 };
    static const size_t sizes[] = {2 * MIB, 3 * MIB, 5 * MIB};
    static uint32_t threads;
    struct {
        void *at;
        uint32_t word, stream;
    } slots[SLOTS] = {0};
    uint32_t state = __atomic_add_fetch(&threads, 1, __ATOMIC_SEQ_CST);
    MUST(!cuCtxSetCurrent(context) && !memstow_scope_enter_(model));
    CUstream streams[] = {stream_new(), stream_new(), CU_STREAM_PER_THREAD};
    for (uint32_t step = 1; step <= STEPS; step++) {
        uint32_t i = below(&state, SLOTS), on = below(&state, 3);
        if (slots[i].at) {
            if (below(&state, 8) == 0) check(slots[i].at, slots[i].word, streams[slots[i].stream]);
            give(slots[i].at, streams[slots[i].stream]);
            slots[i].at = NULL;
        } else {
            slots[i].at = ask(sizes[below(&state, 3)], streams[on]);
            slots[i].word = step, slots[i].stream = on;
            MUST(!cuMemsetD32Async((CUdeviceptr)slots[i].at, step, 16, streams[on]));
        }
    }
    for (int i = 0; i < SLOTS; i++)
        if (slots[i].at) check(slots[i].at, slots[i].word, streams[slots[i].stream]);
    MUST(!memstow_scope_leave_(model));
    return NULL;
}

static void at_random(void) {
    pthread_t threads[2];
    CUcontext context;
    begin();
    MUST(!cuCtxGetCurrent(&context));
    sim_set_latency_us(20);
    for (int i = 0; i < 2; i++) MUST(!pthread_create(&threads[i], NULL, use_at_random, context));
    for (int i = 0; i < 2; i++) MUST(!pthread_join(threads[i], NULL));
    MUST(!usage().faults);
}

/* --- when memory is given back */

static void at_the_scopes_end(void) {
    begin();
    uint64_t used = usage().used;
    give(ask(3 * MIB, NULL), NULL);
    give(ask(5 * MIB, NULL), NULL);
    MUST(!cudaDeviceSynchronize());
    void *more = ask(9 * MIB, NULL); /* a request looks at what was freed */
    MUST(usage().used == used + 20 * MIB);
    MUST(!memstow_scope_enter_(model) && !memstow_scope_leave_(model)); /* the inner one of two scopes */
    MUST(usage().used == used + 20 * MIB);
    leave();
    MUST(usage().used == used + 10 * MIB && !cudaFree(more) && usage().used == used && !usage().reserved_va);
}

/* MEMSTOW_CUDA_SPARE=8M: no more than that is kept. */
static void bounded(void) {
    void *at[8];
    begin();
    uint64_t used = usage().used;
    for (int i = 0; i < 8; i++) MUST(!cudaMalloc(&at[i], 3 * MIB));
    for (int i = 0; i < 8; i++) MUST(!cudaFree(at[i]));
    MUST(usage().used == used + 8 * MIB);
    void *large;
    MUST(!cudaMalloc(&large, 10 * MIB) && !cudaFree(large) && usage().used == used + 8 * MIB);
}

/* Makes spares of 10 MiB that take most of the device's 128 MiB. */
static void take_most(void) {
    void *at[10];
    for (int i = 0; i < 10; i++) MUST(!cudaMalloc(&at[i], 10 * MIB));
    for (int i = 0; i < 10; i++) MUST(!cudaFree(at[i]));
    MUST(usage().used >= 100 * MIB);
}

static void out_of_memory(void) {
    CUmemAllocationProp physical = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUmemGenericAllocationHandle memory;
    void *at;
    begin();
    take_most();
    uint64_t made = sim_count_ok("cuMemCreate");
    MUST(!cudaMallocAsync(&at, 64 * MIB, NULL) && sim_count_ok("cuMemCreate") == made + 1); /* served, too */
    MUST(!cudaFree(at));
    take_most();
    MUST(!cuMemCreate(&memory, 64 * MIB, &physical, 0) && !cuMemRelease(memory));
    take_most();
    MUST(!cudaMalloc(&at, 64 * MIB)); /* at the first request */
}

/* Requests that memstow does not serve can also get the memory of spares. */
static void other_entries(void) {
    enum { FLOAT = 0x20 };
    CUDA_ARRAY_DESCRIPTOR plane = {4096, 4096, FLOAT, 1};
    CUDA_ARRAY3D_DESCRIPTOR solid = {4096, 4096, 0, FLOAT, 1, 0};
    CUdeviceptr at;
    CUarray array;
    CUmipmappedArray levels;
    size_t pitch;
    begin();
    take_most();
    MUST(!cuMemAllocManaged(&at, 64 * MIB, 1) && !cuMemFree_v2(at));
    take_most();
    MUST(!cuMemAllocPitch_v2(&at, &pitch, MIB, 64, 4) && !cuMemFree_v2(at));
    take_most();
    MUST(!cuArrayCreate_v2(&array, &plane) && !cuArrayDestroy(array));
    take_most();
    MUST(!cuArray3DCreate_v2(&array, &solid) && !cuArrayDestroy(array));
    take_most();
    MUST(!cuMipmappedArrayCreate(&levels, &solid, 1) && !cuMipmappedArrayDestroy(levels));
}

/* Kept memory is reported to the program as free, and the program can allocate it. */
static void free_memory(void) {
    size_t before, after, total, same;
    void *at;
    begin();
    MUST(!cudaMemGetInfo(&before, &total));
    take_most();
    MUST(!cudaMemGetInfo(&after, &same) && after == before && same == total);
    MUST(!cudaMalloc(&at, after - after % (2 * MIB)) && !cudaFree(at));
    MUST(!cudaMemGetInfo(&after, &same) && after == before && same == total);
}

static void kept_at_the_end(void) {
    size_t available, total;
    begin();
    take_most();
    MUST(!cudaMemGetInfo(&available, &total));
}

/* memstow gives spares back when the program trims the pool, when a trigger comes, and when memory moves. */
static void on_request(void) {
    CUmemoryPool pool;
    void *weights, *host;
    begin();
    MUST(!cuMemHostAlloc(&host, MIB, 0) && !cuMemFreeHost(host)); /* the first pinned memory may take device memory */
    MUST(!cudaMalloc(&weights, 8 * MIB));
    uint64_t used = usage().used;
    MUST(!cuDeviceGetDefaultMemPool(&pool, 0));
    give(ask(3 * MIB, NULL), NULL);
    MUST(!cudaDeviceSynchronize() && !cuMemPoolTrimTo(pool, 0) && usage().used == used);
    give(ask(3 * MIB, NULL), NULL);
    MUST(!cudaDeviceSynchronize() && memstow_trigger_(MEMSTOW_RUN_ENDED, "") >= 0 && usage().used == used);
    fill(weights, 8 * MIB, 1);
    give(ask(3 * MIB, NULL), NULL);
    MUST(!memstow_owner_idle_(model, 1) && memstow_stow_(model) == 8 * (int64_t)MIB);
    MUST(usage().used == used - 8 * MIB);
    give(ask(8 * MIB, NULL), NULL); /* it does not get memory of the stowed block */
    MUST(!cudaDeviceSynchronize());
    MUST(memstow_restore_(model) == 8 * (int64_t)MIB && holds(weights, 8 * MIB, 1) && usage().used == used);
}

static void at_a_reset(void) {
    void *at;
    begin();
    give(ask(3 * MIB, NULL), NULL);
    MUST(!cudaMalloc(&at, 5 * MIB) && !cudaFree(at) && !cudaDeviceSynchronize());
    MUST(!cudaMalloc(&at, 9 * MIB) && usage().handles == 3);
    MUST(!cudaDeviceReset());
    MUST(!usage().handles && !usage().reserved_va);
    MUST(!cudaMalloc(&at, 3 * MIB) && !cudaFree(at) && !usage().faults);
}

/* Each call of the driver in turn returns an error. After the scope has ended, the driver has no more memory in use
 * than at the beginning. */
static void half_way(void) {
    begin();
    CUstream stream = stream_new();
    uint64_t used = usage().used;
    for (uint64_t nth = 1; nth < 60; nth++) {
        void *at[4];
        sim_fail("*", nth, nth % 2 ? 719 : CUDA_ERROR_OUT_OF_MEMORY, 1);
        for (int i = 0; i < 4; i++)
            if (i % 2 ? cudaMalloc(&at[i], 3 * MIB) : cudaMallocAsync(&at[i], 3 * MIB, stream)) at[i] = NULL;
        for (int i = 0; i < 4; i++)
            while (at[i] && (i % 2 ? cudaFree(at[i]) : cudaFreeAsync(at[i], stream))) sim_fail(NULL, 0, 0, 0);
        sim_fail(NULL, 0, 0, 0);
        MUST(!cudaDeviceSynchronize());
    }
    leave();
    size_t available, total;
    MUST(!cudaMemGetInfo(&available, &total));
    MUST(usage().used == used && !usage().handles && !usage().faults);
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"in_a_stream", in_a_stream},
                                              {"of_cuda_malloc", of_cuda_malloc},
                                              {"of_several_sizes", of_several_sizes},
                                              {"behind", behind},
                                              {"other_streams", other_streams},
                                              {"not_kept", not_kept},
                                              {"at_random", at_random},
                                              {"at_the_scopes_end", at_the_scopes_end},
                                              {"bounded", bounded},
                                              {"out_of_memory", out_of_memory},
                                              {"other_entries", other_entries},
                                              {"free_memory", free_memory},
                                              {"kept_at_the_end", kept_at_the_end},
                                              {"on_request", on_request},
                                              {"at_a_reset", at_a_reset},
                                              {"half_way", half_way}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
