/* _moves.c — a program whose model's device memory moves, over the simulated driver (a test double). The first argument
 * is the case. The program prints lines for moves.py. A failed check ends the program with a message. */
#include "_unet.h"

#include <setjmp.h>
#include <signal.h>

/* Memory stays out to the end, and the test looks at the ledger. */
static void stays_out(void) {
    size_t available, total;
    load();
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(!cudaMemGetInfo(&available, &total));
}

/* All memory stays live to the end, and the test looks at the report. */
static void out_and_back(void) {
    size_t before, after, total, more;
    load();
    MUST(sim_count_ok("cuMemCreate") == 2);
    uint64_t used = usage().used;
    MUST(memstow_stow_(model) == -EBUSY); /* it is not declared idle */
    MUST(usage().used == used);
    MUST(!memstow_owner_idle_(model, 1));
    MUST(!cudaMemGetInfo(&before, &total));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(usage().used == used - 14 * MIB);
    MUST(stowed_bytes() == 14 * MIB);
    MUST(!cudaMemGetInfo(&after, &more));
    MUST(after == before + 14 * MIB && more == total + 14 * MIB); /* free, and still the program's */
    MUST(holds(outside, 8 * MIB, 4));
    MUST(memstow_restore_(model) == 14 * (int64_t)MIB);
    MUST(usage().used == used && !stowed_bytes());
    look();
    MUST(!usage().faults);
}

/* Another model takes the room of a stowed model. Free memory plus the program's memory is never more than the device's
 * memory: PyTorch's allocator checks this. */
static void room_is_used(void) {
    size_t available, total, used = 23 * MIB;
    void *second;
    load();
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(!cudaMemGetInfo(&available, &total) && available + used <= total);
    uint32_t other = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, "vae", "", 7, 0);
    MUST(!memstow_scope_enter_(other) && !cudaMallocAsync(&second, available - 2 * MIB, NULL));
    MUST(!memstow_scope_leave_(other));
    used += available - 2 * MIB;
    MUST(!cudaMemGetInfo(&available, &total) && available < 4 * MIB && available + used <= total);
    MUST(memstow_restore_(model) == -ENOMEM);
    MUST(!memstow_owner_idle_(other, 1) && memstow_stow_(other) > 0);
    MUST(memstow_restore_(model) == 14 * (int64_t)MIB);
    MUST(!cudaMemGetInfo(&available, &total) && available + used <= total);
    look();
}

/* Memory that is in place is freed: plain memory by cudaFree, pooled memory by cudaFreeAsync. Memory that is out is
 * freed by cudaFree. A call that the driver would refuse is refused. */
static void frees(void) {
    uint64_t empty = usage().used;
    load();
    MUST(cudaFreeAsync(plain, NULL) == 1); /* plain memory */
    MUST(!cudaFree(plain) && cudaFree(plain) == 1);
    MUST(!cudaFreeAsync(pooled, NULL) && cudaFreeAsync(pooled, NULL) == 1);
    MUST(!cudaFree(small) && !cudaFree(outside));
    MUST(!cudaDeviceSynchronize());
    load();
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(!cudaFree(pooled) && !cudaFree(plain) && !cudaFree(small) && !cudaFree(outside));
    MUST(memstow_restore_(model) == 0 && !stowed_bytes());
    MUST(usage().used - usage().contexts == empty && !usage().blocks && !usage().faults);
}

/* Memory is freed on another stream than its own, while that other stream still works on it. */
static void other_stream(void) {
    CUstream stream;
    load();
    uint64_t used = usage().used;
    MUST(!cudaStreamCreateWithFlags(&stream, CU_STREAM_NON_BLOCKING));
    sim_set_latency_us(30000);
    MUST(!cuMemsetD32Async((CUdeviceptr)pooled, 1, MIB, stream));
    MUST(!cudaFreeAsync(pooled, stream));
    MUST(usage().used == used);
    sim_set_latency_us(0);
    MUST(!cudaDeviceSynchronize());
    load(); /* the next requests give it back */
    MUST(!usage().faults);
}

static void no_vram(void) {
    void *rest;
    char *host;
    size_t available, total;
    load();
    MUST(!memstow_scope_enter_(model) && (host = malloc(4 * MIB)) && !memstow_scope_leave_(model));
    memset(host, 1, 4 * MIB);
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) >= 14 * (int64_t)MIB); /* host memory moves, too, if there is a disk for it */
    MUST(!cudaMemGetInfo(&available, &total));
    MUST(!cudaMalloc(&rest, available - 6 * MIB)); /* 6 MiB of 14 are left */
    MUST(memstow_restore_(model) == -ENOMEM);      /* no part of it comes back, and no host memory */
    MUST(stowed_bytes() == 14 * MIB);
    MUST(!cudaFree(rest));
    MUST(memstow_restore_(model) == 14 * (int64_t)MIB && !stowed_bytes());
    look();
}

/* MEMSTOW_CUDA_HOST allows 8 MiB of host memory, too little for both blocks. The block that stays can be used. */
static void no_host(void) {
    load();
    MUST(!memstow_owner_idle_(model, 1));
    int64_t moved = memstow_stow_(model);
    MUST(moved == 6 * (int64_t)MIB || moved == 8 * (int64_t)MIB);
    MUST(memstow_stow_(model) == -ENOMEM);
    MUST(stowed_bytes() == (uint64_t)moved);
    MUST(memstow_restore_(model) == moved);
    look();
}

/* All remaining memory is allocated, freed while the stream still works, and requested again. The driver's own pool
 * could serve this second request, so memstow must serve it, too. */
static void freed_memory_comes_back(void) {
    void *at;
    size_t available, total;
    load();
    MUST(!cudaMemGetInfo(&available, &total));
    MUST(!memstow_scope_enter_(model));
    MUST(!cudaMallocAsync(&at, available - 2 * MIB, NULL));
    MUST(sim_count_ok("cuMemCreate") > 2);
    sim_set_latency_us(30000);
    MUST(!cuMemsetD32Async((CUdeviceptr)at, 1, MIB, NULL));
    MUST(!cudaFreeAsync(at, NULL));
    MUST(!cudaMallocAsync(&at, available - 4 * MIB, NULL)); /* more than is left, and served, too */
    MUST(!memstow_scope_leave_(model));
    MUST(!cudaFreeAsync(at, NULL));
    MUST(!cudaMalloc(&at, available - 4 * MIB)); /* served by the driver, too */
    sim_set_latency_us(0);
    MUST(!cudaFree(at));
    look();
    MUST(!usage().faults);
}

/* Freed memory of a pool counts as free memory of the device after a wait, or after the pool was trimmed. */
static void freed_memory_is_shown(void) {
    size_t before, after, total;
    CUmemoryPool pool;
    load();
    MUST(!cudaMemGetInfo(&before, &total));
    MUST(!cudaFreeAsync(pooled, NULL) && !cudaDeviceSynchronize());
    MUST(!cudaMemGetInfo(&after, &total) && after == before + 6 * MIB);
    load();
    uint64_t used = usage().used;
    MUST(!cudaFreeAsync(pooled, NULL) && !cudaDeviceSynchronize());
    MUST(!cuDeviceGetDefaultMemPool(&pool, 0) && !cuMemPoolTrimTo(pool, 0));
    MUST(usage().used == used - 6 * MIB);
}

/* Served memory cannot be exported. memstow says so once (moves.py). */
static void exports(void) {
    CUipcMemHandle handle;
    load();
    MUST(cuIpcGetMemHandle(&handle, (CUdeviceptr)plain) == CUDA_ERROR_INVALID_VALUE);
    MUST(cuIpcGetMemHandle(&handle, (CUdeviceptr)plain) == CUDA_ERROR_INVALID_VALUE);
}

/* MEMSTOW_CUDA_IPC=1: memory of cudaMalloc is not served. */
static void exportable(void) {
    CUipcMemHandle handle;
    load();
    MUST(!cuIpcGetMemHandle(&handle, (CUdeviceptr)plain));
    MUST(!memstow_owner_idle_(model, 1) && memstow_stow_(model) == 6 * (int64_t)MIB);
    MUST(memstow_restore_(model) == 6 * (int64_t)MIB);
}

/* MEMSTOW_CUDA_TOTAL=1: the total does not change, and memory that is out counts as free. */
static void total_stays(void) {
    size_t before, after, total, now;
    load();
    MUST(!memstow_owner_idle_(model, 1) && !cudaMemGetInfo(&before, &total));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB && !cudaMemGetInfo(&after, &now));
    MUST(now == total && after == before + 14 * MIB);
    MUST(memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB && !cudaMemGetInfo(&after, &now)); /* the ledger's last figures */
}

/* Memory is freed on the thread's own stream 0, which does not wait for the endless kernel on a blocking stream. The
 * legacy stream would wait for this kernel. */
static void own_stream(void) {
    CUstream blocking;
    load();
    MUST(!cudaStreamCreateWithFlags(&blocking, 0));
    launch_endless(blocking);
    MUST(!cuMemFreeAsync_ptsz((CUdeviceptr)pooled, NULL));
    MUST(!cuStreamSynchronize(CU_STREAM_PER_THREAD)); /* the legacy stream would wait for ever */
    uint64_t used = usage().used;
    size_t available, total;
    MUST(!cudaMemGetInfo(&available, &total));
    MUST(usage().used == used - 6 * MIB);
    sim_release_kernels(1);
    MUST(!cudaDeviceSynchronize());
}

static void captures(void) {
    CUstream stream;
    CUgraph graph;
    void *at;
    load();
    uint64_t served = sim_count("cuMemCreate");
    MUST(!memstow_owner_idle_(model, 1));
    MUST(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(!cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL));
    MUST(memstow_stow_(model) == -EBUSY);
    MUST(!memstow_scope_enter_(model));
    MUST(!cudaMallocAsync(&at, 8 * MIB, stream));
    MUST(!memstow_scope_leave_(model));
    MUST(!cuStreamEndCapture(stream, &graph)); /* our calls have not broken it */
    MUST(sim_count("cuMemCreate") == served);
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
}

/* Captures begin and end at any time beside moves: none is broken, and moves go on between them. */
static int moves_are_over; /* atomic */
static uint64_t captures_made;

static void *capture_often(void *context) {
    CUstream stream;
    CUgraph graph;
    MUST(!cuCtxSetCurrent(context) && !cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    while (!__atomic_load_n(&moves_are_over, __ATOMIC_SEQ_CST)) {
        MUST(!cuStreamBeginCapture_v2(stream, CU_CAPTURE_GLOBAL));
        MUST(!cuMemsetD32Async((CUdeviceptr)outside, 4, 4, stream));
        usleep(100);
        MUST(!cuStreamEndCapture(stream, &graph) && !cuGraphDestroy(graph));
        captures_made++;
        usleep(captures_made % 7 * 20);
    }
    return NULL;
}

static void captures_meanwhile(void) {
    pthread_t thread;
    CUcontext context;
    int moved = 0;
    load();
    MUST(!memstow_owner_idle_(model, 1) && !cuCtxGetCurrent(&context));
    sim_slow("cuCtxSynchronize", 2000); /* so that captures begin after memstow's check and before the driver acts */
    MUST(!pthread_create(&thread, NULL, capture_often, context));
    for (int i = 0; i < 100000 && moved < 40; i++) {
        int64_t out = memstow_stow_(model);
        MUST(out == 14 * (int64_t)MIB || out == -EBUSY || (out == 0 && stowed_bytes()));
        int64_t back = memstow_restore_(model);
        MUST(back == 14 * (int64_t)MIB || back == -EBUSY || (back == 0 && !stowed_bytes()));
        moved += out > 0;
    }
    MUST(moved == 40);
    sim_slow(NULL, 0);
    __atomic_store_n(&moves_are_over, 1, __ATOMIC_SEQ_CST);
    MUST(!pthread_join(thread, NULL) && captures_made > 0);
    while (stowed_bytes()) MUST(memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
}

/* A graph that was captured before the move writes to the same addresses after it. */
static void replays(void) {
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    load();
    MUST(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(!cuStreamBeginCapture_v2(stream, CU_CAPTURE_RELAXED));
    MUST(!cuMemsetD32Async((CUdeviceptr)plain, 0x01010101, 2 * MIB, stream));
    MUST(!cuStreamEndCapture(stream, &graph));
    MUST(!cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB && memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
    MUST(!cuGraphLaunch(exec, stream) && !cuStreamSynchronize(stream));
    char back[4];
    MUST(!cudaMemcpy(back, (char *)plain + 8 * MIB - 4, 4, 2) && back[0] == 1 && back[3] == 1);
}

/* A condition's body fills the second 2 MiB with 2, and then a kernel fills the first 2 MiB with 3. */
static void add_kernels(CUgraph graph, CUdeviceptr at) {
    CUgraphNode node;
    CUmodule module;
    CUfunction fill;
    uint64_t words = MIB / 2, value = 3;
    void *arguments[] = {&at, &words, &value};
    CUgraphNodeParams when = {.type = CU_GRAPH_NODE_CONDITIONAL, .conditional = {.type = CU_GRAPH_COND_IF, .size = 1}};
    CUgraphNodeParams fills = {.type = CU_GRAPH_NODE_MEMSET, .set = {at + 2 * MIB, 0, 0x02020202, 4, MIB / 2, 1}};
    MUST(!cuModuleLoadData(&module, "") && !cuModuleGetFunction(&fill, module, "sim_fill"));
    MUST(!cuGraphConditionalHandleCreate(&when.conditional.handle, graph, NULL, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
    MUST(!cuGraphAddNode(&node, graph, NULL, 0, &when));
    MUST(!cuGraphAddNode(&node, when.conditional.phGraph_out[0], NULL, 0, &fills));
    CUgraphNodeParams runs = {.type = CU_GRAPH_NODE_KERNEL,
                              .kernel = {fill, 1, 1, 1, 32, 1, 1, 0, arguments, NULL, NULL, NULL}};
    MUST(!cuGraphAddNode(&node, graph, NULL, 0, &runs));
}

/* A graph's kernels, and the body that its condition chooses, use memory that was moved out and brought back. */
static void replays_kernels(void) {
    CUgraph graph;
    CUgraphExec exec;
    load();
    MUST(!cuGraphCreate(&graph, 0));
    add_kernels(graph, (CUdeviceptr)plain);
    MUST(!cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB && memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
    MUST(!cuGraphLaunch(exec, NULL) && !cuStreamSynchronize(NULL));
    uint32_t back[2];
    MUST(!cudaMemcpy(&back[0], plain, 4, 2) && back[0] == 3);
    MUST(!cudaMemcpy(&back[1], (char *)plain + 3 * MIB, 4, 2) && back[1] == 0x02020202);
}

/* Nodes for copies and fills, in a graph and in its child graph, contain addresses, as captured work does. */
static void replays_nodes(void) {
    CUgraph graph, child;
    CUgraphNode node;
    CUgraphExec exec;
    load();
    CUdeviceptr at = (CUdeviceptr)plain;
    CUgraphNodeParams fills = {.type = CU_GRAPH_NODE_MEMSET, .set = {at, 0, 0x02020202, 4, MIB, 1}};
    CUDA_MEMCPY3D copies = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                            .srcDevice = at,
                            .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                            .dstDevice = at + 4 * MIB,
                            .WidthInBytes = 4 * MIB,
                            .Height = 1,
                            .Depth = 1};
    MUST(!cuGraphCreate(&graph, 0) && !cuGraphCreate(&child, 0));
    MUST(!cuGraphAddNode(&node, child, NULL, 0, &fills));
    MUST(!cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    MUST(!cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copies, NULL));
    MUST(!cuGraphInstantiateWithFlags(&exec, graph, 0));
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB && memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
    MUST(!cuGraphLaunch(exec, NULL) && !cuStreamSynchronize(NULL));
    char back[4];
    MUST(!cudaMemcpy(back, (char *)plain + 8 * MIB - 4, 4, 2) && back[0] == 2 && back[3] == 2);
}

static sigjmp_buf before_the_move;

static void leave(int number) { siglongjmp(before_the_move, number); }

static void interrupt(void) { MUST(!raise(SIGUSR1)); }

/* A signal comes during a move. Its handler runs only after the move, and leaves memstow's call by longjmp. */
static void left_by_a_jump(void) {
    load();
    MUST(!memstow_owner_idle_(model, 1));
    signal(SIGUSR1, leave);
    sim_tell("cuMemUnmap", interrupt);
    if (!sigsetjmp(before_the_move, 1)) MUST(memstow_stow_(model) == -1); /* the handler leaves it */
    MUST(stowed_bytes() == 14 * MIB);
    sim_tell("cuMemMap", interrupt);
    if (!sigsetjmp(before_the_move, 1)) MUST(memstow_restore_(model) == -1);
    sim_tell(NULL, NULL);
    MUST(!stowed_bytes());
    look();
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB && memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
}

static void adopted(void) {
    load();
    uint32_t real = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, "known", "", 2, 0);
    MUST(!memstow_owner_adopt_(real, model));
    MUST(!memstow_owner_idle_(real, 1));
    MUST(memstow_stow_(real) == 14 * (int64_t)MIB && memstow_restore_(real) == 14 * (int64_t)MIB);
    look();
}

/* Assigned memory moves with its model. A block of several models stays. */
static void assigned(void) {
    load();
    uint32_t heir = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, "heir", "", 3, 0);
    MUST(!memstow_owner_idle_(model, 1) && !memstow_owner_idle_(heir, 1));
    MUST(!memstow_assign_(heir, plain, 8 * MIB));
    MUST(memstow_stow_(model) == 6 * (int64_t)MIB && memstow_stow_(heir) == 8 * (int64_t)MIB);
    MUST(memstow_assign_(model, plain, 8 * MIB) == -EBUSY && memstow_assign_(model, plain, MIB) == -EBUSY); /* out */
    MUST(memstow_release_range_(plain, 8 * MIB) == -EBUSY);
    MUST(memstow_restore_(model) == 6 * (int64_t)MIB && memstow_restore_(heir) == 8 * (int64_t)MIB);
    MUST(!memstow_assign_(heir, (char *)pooled + MIB, MIB));
    MUST(memstow_stow_(model) == -EPERM && !stowed_bytes()); /* a part of it is the heir's */
    MUST(!memstow_assign_(heir, pooled, MIB));
    MUST(!memstow_assign_(heir, (char *)pooled + 2 * MIB, 4 * MIB)); /* now all of the block */
    MUST(memstow_stow_(model) == 0 && memstow_stow_(heir) == 14 * (int64_t)MIB);
    MUST(!memstow_owner_retire_(model));
    MUST(memstow_restore_(heir) == 14 * (int64_t)MIB);
    look();
}

/* A model without host memory is stowed when a run has ended, and its figures include its device memory. */
static void by_policy(void) {
    struct memstow_figures figures = {.size = sizeof figures};
    uint32_t loader = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, "loader", "", 2, 0);
    model = (uint32_t)memstow_owner_open_(MEMSTOW_MODEL, "unet", "", 1, 0);
    MUST(!memstow_scope_enter_(loader) && !cudaMalloc(&plain, 8 * MIB) && !memstow_scope_leave_(loader));
    MUST(!memstow_assign_(model, plain, 8 * MIB)); /* the host memory that the driver took stays the loader's */
    fill(plain, 8 * MIB, 1);
    MUST(!memstow_owner_figures_(model, &figures) && figures.cuda_bytes == 8 * MIB && !figures.live_bytes);
    MUST(!memstow_owner_policy_(model, MEMSTOW_STOW, 0));
    MUST(memstow_trigger_(MEMSTOW_RUN_ENDED, "in use") == 0 && !stowed_bytes());
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_trigger_(MEMSTOW_PRESSURE, "of the host") == 0 && !stowed_bytes());
    MUST(memstow_trigger_(MEMSTOW_RUN_ENDED, "ok") == 8 * (int64_t)MIB && stowed_bytes() == 8 * MIB);
    MUST(memstow_restore_(model) == 8 * (int64_t)MIB && holds(plain, 8 * MIB, 1));
    MUST(!memstow_owner_retire_(model));
    MUST(memstow_trigger_(MEMSTOW_RUN_ENDED, "retired") >= 0); /* left behind */
}

/* Requests from outside stow the model, and then restore it. */
static void asked(void) {
    load();
    MUST(!memstow_owner_idle_(model, 1));
    puts("loaded");
    fflush(stdout);
    while (stowed_bytes() != 14 * MIB) usleep(1000);
    while (stowed_bytes()) usleep(1000);
    look();
    while (getchar() != EOF) continue; /* the client has had its answer */
}

/* A block stays if the program has a handle of its memory. The model's second block moves. */
static void known(void) {
    CUmemGenericAllocationHandle handle;
    int shared;
    load();
    MUST(!memstow_owner_idle_(model, 1));
    MUST(!cuMemRetainAllocationHandle(&handle, (char *)pooled + MIB));
    MUST(memstow_stow_(model) == 8 * (int64_t)MIB && memstow_restore_(model) == 8 * (int64_t)MIB);
    MUST(!cuMemGetHandleForAddressRange(&shared, (CUdeviceptr)plain, MIB, 1, 0));
    MUST(memstow_stow_(model) == -EPERM && !stowed_bytes());
    look();
}

static void is_device_pointer(void *at) {
    unsigned type = 0, managed = 7;
    int ordinal = 7;
    CUdeviceptr start = 0, same = 0;
    size_t bytes = 0;
    int which[] = {CU_POINTER_MEMORY_TYPE, CU_POINTER_DEVICE_ORDINAL, CU_POINTER_RANGE_SIZE};
    void *out[] = {&type, &ordinal, &bytes};
    MUST(!cuPointerGetAttributes(3, which, out, (CUdeviceptr)at + MIB));
    MUST(type == CU_MEMORYTYPE_DEVICE && ordinal == 0 && bytes == 6 * MIB);
    MUST(!cuPointerGetAttribute(&same, CU_POINTER_DEVICE_POINTER, (CUdeviceptr)at) && same == (CUdeviceptr)at);
    MUST(!cuPointerGetAttribute(&managed, CU_POINTER_IS_MANAGED, (CUdeviceptr)at) && !managed);
    MUST(!cuPointerGetAttribute(&start, CU_POINTER_RANGE_START, (CUdeviceptr)at + MIB) && start == (CUdeviceptr)at);
    MUST(!cuMemGetAddressRange_v2(&start, &bytes, (CUdeviceptr)at + MIB));
    MUST(start == (CUdeviceptr)at && bytes == 6 * MIB);
}

/* An address of served memory has the properties of its allocation, whether the memory is in place or out. For other
 * addresses, the driver answers. */
static void pointers(void) {
    unsigned type;
    load();
    is_device_pointer(pooled);
    MUST(!memstow_owner_idle_(model, 1) && memstow_stow_(model) == 14 * (int64_t)MIB);
    is_device_pointer(pooled);
    MUST(!cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, (CUdeviceptr)outside) && type == CU_MEMORYTYPE_DEVICE);
    MUST(!cudaFree(pooled) && cuPointerGetAttribute(&type, CU_POINTER_MEMORY_TYPE, (CUdeviceptr)pooled) == 1);
}

static uint64_t figure(int which) {
    CUmemoryPool pool;
    uint64_t value;
    MUST(!cuDeviceGetDefaultMemPool(&pool, 0) && !cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

/* The pool's figures that PyTorch's memory_stats() reads. They also count memory that is out. */
static void pool_figures(void) {
    CUmemoryPool pool;
    void *more;
    uint64_t none = 0;
    load();
    MUST(figure(CU_POOL_USED) == 6 * MIB && figure(CU_POOL_RESERVED) >= 6 * MIB);
    MUST(!memstow_owner_idle_(model, 1) && memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(figure(CU_POOL_USED) == 6 * MIB && figure(CU_POOL_RESERVED) >= 6 * MIB);
    MUST(memstow_restore_(model) == 14 * (int64_t)MIB);
    MUST(!memstow_scope_enter_(model) && !cudaMallocAsync(&more, 3 * MIB, NULL) && !memstow_scope_leave_(model));
    MUST(figure(CU_POOL_USED) == 9 * MIB && figure(CU_POOL_RESERVED) >= 10 * MIB);
    MUST(!cudaFreeAsync(more, NULL) && !cudaDeviceSynchronize());
    MUST(figure(CU_POOL_USED) == 6 * MIB && figure(CU_POOL_USED_HIGH) == 9 * MIB);
    MUST(figure(CU_POOL_RESERVED_HIGH) >= figure(CU_POOL_USED_HIGH));
    MUST(!cuDeviceGetDefaultMemPool(&pool, 0) && !cuMemPoolSetAttribute(pool, CU_POOL_USED_HIGH, &none));
    MUST(figure(CU_POOL_USED_HIGH) == 6 * MIB && figure(CU_POOL_RESERVED_HIGH) >= 10 * MIB);
}

/* Kills the process with SIGKILL as soon as the driver gets this call. At that moment the move has begun, and it takes
 * a while. */
static void *kill_at(void *name) {
    uint64_t before = sim_count(name);
    while (sim_count(name) == before) usleep(100);
    kill(getpid(), SIGKILL);
    return NULL;
}

static void killed_at(const char *name, int64_t (*move)(uint32_t)) {
    pthread_t thread;
    MUST(!pthread_create(&thread, NULL, kill_at, (void *)(uintptr_t)name));
    sim_set_latency_us(100000);
    move(model);
    MUST(!"still there");
}

static void killed_on_the_way_out(void) {
    load();
    MUST(!memstow_owner_idle_(model, 1));
    killed_at("cuMemcpyDtoHAsync_v2", memstow_stow_);
}

static void killed_on_the_way_back(void) {
    load();
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(!memstow_owner_retire_(model));
    killed_at("cuMemcpyHtoDAsync_v2", memstow_restore_);
}

/* A move calls the driver several times. Each of these calls in turn returns an error: nothing is lost, figures and
 * driver agree, and the failed move can be tried again. */
static void half_way(void) {
    load();
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB &&
         memstow_restore_(model) == 14 * (int64_t)MIB); /* the ring exists already */
    uint64_t used = usage().used, before = sim_count("*");
    MUST(memstow_stow_(model) == 14 * (int64_t)MIB && memstow_restore_(model) == 14 * (int64_t)MIB);
    uint64_t calls = sim_count("*") - before;
    for (uint64_t nth = 1; nth <= calls; nth++) {
        sim_fail("*", nth, nth % 2 ? 719 : CUDA_ERROR_OUT_OF_MEMORY, 1);
        int64_t out = memstow_stow_(model);
        MUST(out >= 0 || out == -EIO || out == -EBUSY || out == -ENOMEM);
        MUST(out <= 0 || stowed_bytes() == (uint64_t)out);
        int64_t back = memstow_restore_(model);
        MUST(back >= 0 || back == -EIO || back == -ENOMEM);
        sim_fail(NULL, 0, 0, 0);
        if (stowed_bytes()) MUST(memstow_restore_(model) == (int64_t)14 * MIB || !stowed_bytes());
        MUST(!stowed_bytes() && usage().used == used && !usage().faults);
        if (nth % 8 == 0) look();
    }
    look();
    MUST(!cudaFree(plain) && !cudaFreeAsync(pooled, NULL) && !cudaFree(small) && !cudaFree(outside));
    MUST(!cudaDeviceSynchronize() && memstow_stow_(model) == 0);
    size_t available, total;
    MUST(!cudaMemGetInfo(&available, &total) && !usage().reserved_va);
}

/* Foreign pointers, and pointers that were freed already, are passed to the driver, which refuses them. This holds also
 * while memory is out. */
static void foreign_pointers(void) {
    void *at;
    load();
    MUST(!memstow_owner_idle_(model, 1) && memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(cudaFree((char *)plain + MIB) == 1 && cudaFree((void *)0xdead000) == 1);
    MUST(cudaFreeAsync((char *)pooled + MIB, NULL) == 1 && cudaFreeAsync(outside, NULL) == 1);
    uint64_t asked = sim_count("cuMemFree_v2");
    MUST(!cudaFree(plain) && sim_count("cuMemFree_v2") == asked); /* memstow's own */
    MUST(cudaFree(plain) == 1 && sim_count("cuMemFree_v2") == asked + 1);
    MUST(!cudaMalloc(&at, MIB) && !cudaFree(at) && cudaFree(at) == 1);
    MUST(memstow_restore_(model) == 6 * (int64_t)MIB && holds(pooled, 6 * MIB, 2) && holds(outside, 8 * MIB, 4));
}

/* An unknown owner is not moved. A retired owner's memory can be moved and brought back. */
static void unknown_and_retired(void) {
    load();
    MUST(memstow_stow_(12345) == -ENOENT && memstow_restore_(12345) == -ENOENT && memstow_stow_(0) == -ENOENT);
    MUST(!memstow_owner_idle_(model, 1) && memstow_stow_(model) == 14 * (int64_t)MIB);
    MUST(!memstow_owner_retire_(model) && memstow_stow_(model) == 0);
    MUST(memstow_restore_(model) == 14 * (int64_t)MIB);
    look();
}

/* The program makes another pool the device's current pool. Such a pool has properties that served memory lacks, so
 * memstow serves nothing until the default pool is the current one again. */
static void another_pool(void) {
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUmemoryPool pool, first;
    void *at;
    load();
    uint64_t served = sim_count_ok("cuMemCreate");
    MUST(!cuMemPoolCreate(&pool, &properties) && !cuDeviceGetDefaultMemPool(&first, 0));
    MUST(!memstow_scope_enter_(model) && !cuDeviceSetMemPool(0, pool));
    MUST(!cudaMallocAsync(&at, 6 * MIB, NULL) && sim_count_ok("cuMemCreate") == served);
    MUST(!cuDeviceSetMemPool(0, first) && !cudaMallocAsync(&at, 6 * MIB, NULL));
    MUST(sim_count_ok("cuMemCreate") == served + 1 && !memstow_scope_leave_(model));
}

/* memstow does not serve memory that is too small, from an explicit pool, or managed. Such memory stays, and the trace
 * says why. */
static void not_served(void) {
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUmemoryPool pool;
    CUdeviceptr at;
    load();
    MUST(!cuMemPoolCreate(&pool, &properties) && !memstow_scope_enter_(model));
    MUST(!cuMemAllocFromPoolAsync(&at, 4 * MIB, pool, NULL) && !cuMemAllocManaged(&at, 3 * MIB, 1));
    MUST(!memstow_scope_leave_(model) && !memstow_owner_idle_(model, 1));
    int64_t moved = memstow_stow_(model);
    MUST((moved == 14 * (int64_t)MIB || moved == 0) && stowed_bytes() == (uint64_t)moved);
    MUST(memstow_restore_(model) == moved);
    look();
}

/* Without MEMSTOW_CUDA_MOVES, nothing is served and nothing moves. */
static void off(void) {
    load();
    MUST(sim_count("cuMemCreate") == 0);
    MUST(!memstow_owner_idle_(model, 1));
    MUST(memstow_stow_(model) == 0 && memstow_restore_(model) == 0);
    look();
}

static uint64_t device_stowed(uint32_t owner) {
    struct memstow_figures figures = {.size = sizeof figures};
    MUST(!memstow_owner_figures_(owner, &figures));
    return figures.device_stowed_bytes;
}

/* A graph that copies from one address to another. */
static CUgraphExec graph_of(void *from, void *to, size_t bytes) {
    CUstream stream;
    CUgraph graph;
    CUgraphExec exec;
    MUST(!cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) && !cuStreamBeginCapture_v2(stream, CU_CAPTURE_RELAXED));
    MUST(!cuMemcpyDtoDAsync_v2((CUdeviceptr)to, (CUdeviceptr)from, bytes, stream));
    MUST(!cuStreamEndCapture(stream, &graph) && !cuGraphInstantiateWithFlags(&exec, graph, 0));
    return exec;
}

/* An inference engine has the tags "weights" and "kv_cache". A tag is an owner: memory belongs to the innermost scope.
 * All tags leave the device, and come back one by one. Kernels use the weights while the cache is out. A graph uses
 * weights and cache, and replays when both are back. */
static void by_tag(void) {
    uint32_t weights = (uint32_t)memstow_owner_open_(MEMSTOW_CUSTOM, "weights", "engine", 1, 1);
    uint32_t cache = (uint32_t)memstow_owner_open_(MEMSTOW_CUSTOM, "kv_cache", "engine", 1, 2);
    void *kept, *first, *second;
    CUgraphExec exec;
    MUST(!memstow_scope_enter_(weights) && !cudaMalloc(&first, 8 * MIB));
    MUST(!memstow_scope_enter_(cache) && !cudaMalloc(&kept, 6 * MIB) && !memstow_scope_leave_(cache));
    MUST(!cudaMalloc(&second, 4 * MIB) && !memstow_scope_leave_(weights));
    fill(first, 8 * MIB, 1);
    fill(second, 4 * MIB, 2);
    exec = graph_of(first, kept, MIB);
    MUST(!memstow_owner_discard_(cache, 1));
    MUST(!memstow_owner_idle_(weights, 1) && !memstow_owner_idle_(cache, 1));
    MUST(memstow_stow_(cache) == 6 * (int64_t)MIB && memstow_stow_(weights) == 12 * (int64_t)MIB);
    uint64_t used = usage().used;
    MUST(memstow_restore_(weights) == 12 * (int64_t)MIB && usage().used == used + 12 * MIB);
    MUST(!memstow_owner_idle_(weights, 0) && device_stowed(cache) == 6 * MIB && !device_stowed(weights));
    MUST(!cuMemcpyDtoDAsync_v2((CUdeviceptr)second, (CUdeviceptr)first, 4 * MIB, NULL) && !cudaDeviceSynchronize());
    MUST(holds(second, 4 * MIB, 1));
    MUST(memstow_restore_(cache) == 6 * (int64_t)MIB && memstow_restore_(weights) == 0);
    MUST(!cuGraphLaunch(exec, NULL) && !cuStreamSynchronize(NULL));
    MUST(holds(kept, MIB, 1) && holds(first, 8 * MIB, 1) && !usage().faults);
}

int main(int argc, char **argv) {
    static const struct model_case cases[] = {{"stays_out", stays_out},
                                              {"out_and_back", out_and_back},
                                              {"frees", frees},
                                              {"other_stream", other_stream},
                                              {"no_vram", no_vram},
                                              {"no_host", no_host},
                                              {"freed_memory_comes_back", freed_memory_comes_back},
                                              {"freed_memory_is_shown", freed_memory_is_shown},
                                              {"own_stream", own_stream},
                                              {"exports", exports},
                                              {"exportable", exportable},
                                              {"captures", captures},
                                              {"captures_meanwhile", captures_meanwhile},
                                              {"replays", replays},
                                              {"replays_nodes", replays_nodes},
                                              {"replays_kernels", replays_kernels},
                                              {"left_by_a_jump", left_by_a_jump},
                                              {"total_stays", total_stays},
                                              {"by_tag", by_tag},
                                              {"adopted", adopted},
                                              {"assigned", assigned},
                                              {"by_policy", by_policy},
                                              {"room_is_used", room_is_used},
                                              {"asked", asked},
                                              {"known", known},
                                              {"pointers", pointers},
                                              {"pool_figures", pool_figures},
                                              {"killed_on_the_way_out", killed_on_the_way_out},
                                              {"killed_on_the_way_back", killed_on_the_way_back},
                                              {"half_way", half_way},
                                              {"foreign_pointers", foreign_pointers},
                                              {"unknown_and_retired", unknown_and_retired},
                                              {"another_pool", another_pool},
                                              {"not_served", not_served},
                                              {"off", off}};
    return model_main(argc, argv, cases, sizeof cases / sizeof *cases, NULL);
}
