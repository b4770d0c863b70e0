/* Cases that the programs in tests/simcuda/clients do not have: failing calls, frees of unknown pointers, physical
 * memory and its handles, other processes, graphs, contexts that end, several devices, owners and parts of blocks. Each
 * case begins without memory and prints the expected report. Over the simulated driver, a test double. */
#include "expect.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi.h"
#include "cuda_abi.h"
#include "simcuda.h"

#define D(name, ...) int name(__VA_ARGS__);
D(cuInit, unsigned)
D(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)
D(cuDevicePrimaryCtxRelease, CUdevice)
D(cuDevicePrimaryCtxRelease_v2, CUdevice)
D(cuDevicePrimaryCtxReset_v2, CUdevice)
D(cuCtxCreate_v2, CUcontext *, unsigned, CUdevice)
D(cuCtxDestroy_v2, CUcontext)
D(cuCtxSetCurrent, CUcontext)
D(cuMemAlloc_v2, CUdeviceptr *, size_t)
D(cuMemFree_v2, CUdeviceptr)
D(cuMemAllocAsync, CUdeviceptr *, size_t, CUstream)
D(cuMemAllocAsync_ptsz, CUdeviceptr *, size_t, CUstream)
D(cuMemAllocManaged, CUdeviceptr *, size_t, unsigned)
D(cuGetProcAddress_v2, const char *, void **, int, uint64_t, int *)
D(cuMemFreeAsync, CUdeviceptr, CUstream)
D(cuMemAllocFromPoolAsync, CUdeviceptr *, size_t, CUmemoryPool, CUstream)
D(cuMemPoolCreate, CUmemoryPool *, const CUmemPoolProps *)
D(cuMemPoolDestroy, CUmemoryPool)
D(cuMemHostAlloc, void **, size_t, unsigned)
D(cuMemFreeHost, void *)
D(cuMemHostRegister_v2, void *, size_t, unsigned)
D(cuMemHostUnregister, void *)
D(cuArrayCreate_v2, CUarray *, const CUDA_ARRAY_DESCRIPTOR *)
D(cuArrayDestroy, CUarray)
D(cuMipmappedArrayDestroy, CUmipmappedArray)
D(cuMipmappedArrayCreate, CUmipmappedArray *, const CUDA_ARRAY3D_DESCRIPTOR *, unsigned)
D(cuMemAddressReserve, CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)
D(cuMemAddressFree, CUdeviceptr, size_t)
D(cuMemCreate, CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *, unsigned long long)
D(cuMemRelease, CUmemGenericAllocationHandle)
D(cuMemRetainAllocationHandle, CUmemGenericAllocationHandle *, void *)
D(cuMemMap, CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long)
D(cuMemUnmap, CUdeviceptr, size_t)
D(cuMemGetHandleForAddressRange, void *, CUdeviceptr, size_t, int, unsigned long long)
D(cuStreamCreate, CUstream *, unsigned)
D(cuStreamBeginCapture_v2, CUstream, int)
D(cuStreamEndCapture, CUstream, CUgraph *)
D(cuStreamBeginCapture_v2_ptsz, CUstream, int)
D(cuMemAllocAsync_ptsz, CUdeviceptr *, size_t, CUstream)
D(cuStreamEndCapture_ptsz, CUstream, CUgraph *)
D(cuStreamQuery, CUstream)
D(cuStreamDestroy_v2, CUstream)
D(cuStreamWaitEvent, CUstream, CUevent, unsigned)
D(cuEventCreate, CUevent *, unsigned)
D(cuEventRecord, CUevent, CUstream)
D(cuGraphCreate, CUgraph *, unsigned)
D(cuGraphDestroy, CUgraph)
D(cuGraphAddMemAllocNode, CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUDA_MEM_ALLOC_NODE_PARAMS *)
D(cuGraphAddNode, CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *)
D(cuGraphAddNode_v2, CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t, CUgraphNodeParams *)
D(cuMemGetInfo_v2, size_t *, size_t *)
D(cuMemsetD8_v2, CUdeviceptr, unsigned char, size_t)
D(cuCtxSynchronize, void)
D(cudaMalloc, void **, size_t)
D(cudaFree, void *)
D(cudaSetDevice, int)
D(cudaDeviceReset, void)
D(cudaIpcGetMemHandle, CUipcMemHandle *, void *)

#define OK(call) MUST((call) == 0)
#define MIB ((size_t)1 << 20)
#define LIVE(kind, bytes) EXPECT("cuda.kinds." kind ".live_bytes", bytes)

static CUcontext first_context(void) {
    CUcontext context;
    OK(cuInit(0));
    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    return context;
}

/* If a free fails, its block stays live. A free of an unknown pointer is passed on to the driver, and counted. */
static void frees(void) {
    CUdeviceptr at, other;
    void *host = aligned_alloc(4096, 8192);
    first_context();
    OK(cuMemAlloc_v2(&at, 3 * MIB));
    OK(cuMemAlloc_v2(&other, 1000));
    MUST(cuMemFree_v2(at + 64) != 0);
    MUST(cuMemFree_v2(0xdead000) != 0);
    OK(cuMemFree_v2(other));
    MUST(cuMemFree_v2(other) != 0);
    OK(cuMemFree_v2(0));
    OK(cuMemHostRegister_v2(host, 8192, 0));
    OK(cuMemHostUnregister(host));
    MUST(cuMemHostUnregister(host) != 0);
    EXPECT("totals.cuda.live_bytes", 3 * MIB);
    EXPECT("totals.cuda.live_blocks", 1);
    EXPECT("totals.cuda.allocated_bytes", 3 * MIB + 1000);
    EXPECT("cuda.foreign_frees", 4);
    LIVE("registered", 0);
}

static CUmemGenericAllocationHandle create(size_t bytes) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUmemGenericAllocationHandle handle;
    OK(cuMemCreate(&handle, bytes, &prop, 0));
    return handle;
}

/* Physical memory lives as long as a handle or a mapping of it does. */
static void physical(void) {
    CUdeviceptr at, range;
    first_context();
    OK(cuMemAddressReserve(&range, 64 * MIB, 0, 0, 0));
    CUmemGenericAllocationHandle a = create(2 * MIB), b = create(4 * MIB), c = create(6 * MIB), again;
    OK(cuMemMap(range, 2 * MIB, 0, a, 0)); /* a: mapped, released: stays */
    OK(cuMemRelease(a));
    OK(cuMemMap(range + 2 * MIB, 4 * MIB, 0, b, 0)); /* b: two handles, one mapping, all of them given back */
    OK(cuMemRetainAllocationHandle(&again, (void *)(range + 3 * MIB)));
    OK(cuMemRelease(b));
    OK(cuMemUnmap(range + 2 * MIB, 4 * MIB));
    OK(cuMemRelease(again));
    OK(cuMemMap(range + 8 * MIB, 6 * MIB, 0, c, 0)); /* c: unmapped, the handle stays */
    OK(cuMemUnmap(range + 8 * MIB, 6 * MIB));
    MUST(cuMemRelease(0x12345) != 0);
    CUmemGenericAllocationHandle d = create(8 * MIB), e = create(10 * MIB); /* both unmapped by one call */
    OK(cuMemMap(range + 16 * MIB, 8 * MIB, 0, d, 0));
    OK(cuMemMap(range + 24 * MIB, 10 * MIB, 0, e, 0));
    OK(cuMemRelease(d));
    OK(cuMemRelease(e));
    OK(cuMemUnmap(range + 16 * MIB, 18 * MIB));
    OK(cuMemAddressReserve(&at, 32 * MIB, 0, 0, 0));
    OK(cuMemAddressFree(at, 32 * MIB));
    LIVE("vmm", 8 * MIB);
    EXPECT("cuda.kinds.vmm.live_blocks", 2);
    LIVE("reserved", 64 * MIB);
    EXPECT("totals.mapped.live_bytes", 0);
    EXPECT("totals.mapped.reserved_bytes", 0);
    EXPECT("cuda.foreign_frees", 1);
}

/* The driver's own mappings, and those of pinned memory, do not count as the program's. */
static void pinned(void) {
    void *at, *gone;
    first_context();
    OK(cuMemHostAlloc(&at, 24 * MIB, 0));
    OK(cuMemHostAlloc(&gone, 40 * MIB, 0));
    OK(cuMemFreeHost(gone));
    MUST(cuMemFreeHost(gone) != 0);
    LIVE("pinned", 24 * MIB);
    EXPECT("totals.cuda.pinned_bytes", 24 * MIB);
    EXPECT("totals.cuda.live_bytes", 0);
    EXPECT("totals.mapped.allocated_bytes", 0);
}

static void arrays(void) {
    CUDA_ARRAY_DESCRIPTOR flat = {100, 0, 0x10, 2};
    CUDA_ARRAY3D_DESCRIPTOR cube = {64, 64, 0, 0x01, 4, 0};
    CUarray a, b;
    CUmipmappedArray mip;
    first_context();
    OK(cuArrayCreate_v2(&a, &flat));
    OK(cuArrayCreate_v2(&b, &flat));
    OK(cuArrayDestroy(b));
    OK(cuMipmappedArrayCreate(&mip, &cube, 2));
    LIVE("array", 100 * 2 * 2 + (64 * 64 + 32 * 32) * 4);
    EXPECT("cuda.kinds.array.live_blocks", 2);
}

/* A request on a captured stream becomes a node of a graph: there is no memory until the graph runs. */
static void graphs(void) {
    CUstream stream;
    CUgraph captured, made, kept;
    CUdeviceptr at, in_capture;
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = 7 * MIB};
    params.poolProps = (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    first_context();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(stream, CU_CAPTURE_RELAXED));
    OK(cuMemAllocAsync(&in_capture, 5 * MIB, stream));
    OK(cuMemFreeAsync(in_capture, stream));
    OK(cuStreamEndCapture(stream, &captured));
    OK(cuGraphCreate(&made, 0));
    OK(cuGraphAddMemAllocNode(&node, made, NULL, 0, &params));
    OK(cuGraphCreate(&kept, 0));
    params.bytesize = 9 * MIB;
    OK(cuGraphAddMemAllocNode(&node, kept, NULL, 0, &params));
    OK(cuMemAllocAsync(&at, 3 * MIB, stream));
    OK(cuGraphDestroy(made));
    OK(cuGraphDestroy(captured));
    LIVE("graph", 9 * MIB);
    LIVE("pool", 3 * MIB);
    EXPECT("totals.cuda.live_bytes", 3 * MIB);
}

/* A graph that is moved into another one ends with it, and so does its memory. A graph that is copied stays. */
static void graphs_in_graphs(void) {
    CUgraph outer, inner, kept, empty;
    CUgraphNode node;
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = 7 * MIB};
    CUgraphNodeParams child = {.type = CU_GRAPH_NODE_GRAPH};
    params.poolProps = (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    first_context();
    OK(cuGraphCreate(&outer, 0));
    OK(cuGraphCreate(&inner, 0));
    OK(cuGraphCreate(&kept, 0));
    OK(cuGraphCreate(&empty, 0));
    OK(cuGraphAddMemAllocNode(&node, inner, NULL, 0, &params));
    params.bytesize = 9 * MIB;
    OK(cuGraphAddMemAllocNode(&node, kept, NULL, 0, &params));
    child.child = (CUDA_CHILD_GRAPH_NODE_PARAMS){inner, CU_GRAPH_CHILD_MOVE};
    OK(cuGraphAddNode(&node, outer, NULL, 0, &child));
    child.child = (CUDA_CHILD_GRAPH_NODE_PARAMS){kept, CU_GRAPH_CHILD_CLONE};
    MUST(cuGraphAddNode(&node, outer, NULL, 0, &child) != 0);
    MUST(cuGraphDestroy(inner) != 0);
    child.child = (CUDA_CHILD_GRAPH_NODE_PARAMS){empty, CU_GRAPH_CHILD_CLONE};
    OK(cuGraphAddNode_v2(&node, outer, NULL, NULL, 0, &child));
    OK(cuGraphDestroy(outer));
    LIVE("graph", 9 * MIB);
}

/* A failed end of one capture does not end another capture. A capture ends with its stream, and with its context.
 * Requests on a stream during its capture become nodes of a graph, and memstow does not ask the driver for figures
 * meanwhile. */
static void captures(void) {
    CUstream streams[4], other;
    CUcontext own, first = first_context();
    CUdeviceptr at;
    CUgraph graph;
    abi_find();
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 4; i++) OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(streams[0], CU_CAPTURE_RELAXED));
    MUST(cuStreamBeginCapture_v2(streams[0], CU_CAPTURE_RELAXED) != 0);
    MUST(cuStreamEndCapture(other, &graph) != 0);
    sim_count_reset();
    OK(cuMemAllocAsync(&at, 5 * MIB, streams[0]));
    OK(cuMemAllocAsync(&at, 7 * MIB, other));
    MUST(sim_count("cuMemGetInfo_v2") == 0);
    OK(cuStreamBeginCapture_v2(streams[1], CU_CAPTURE_RELAXED));
    OK(cuStreamDestroy_v2(streams[1]));
    OK(cuStreamBeginCapture_v2(streams[2], CU_CAPTURE_RELAXED));
    OK(cuMemAllocAsync(&at, 11 * MIB, streams[2]));
    MUST(cuStreamQuery(streams[2]) != 0); /* breaks the capture: cuStreamEndCapture fails, but ends the capture */
    MUST(cuStreamEndCapture(streams[2], &graph) != 0);
    OK(cuStreamEndCapture(streams[0], &graph));
    OK(cuCtxCreate_v2(&own, 0, 0));
    OK(cuStreamCreate(&streams[3], CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(streams[3], CU_CAPTURE_RELAXED));
    OK(cuCtxDestroy_v2(own));
    OK(cuCtxSetCurrent(first));
    sim_count_reset();
    OK(cuMemAlloc_v2(&at, 100 * MIB));
    if (has_memstow) MUST(sim_count("cuMemGetInfo_v2") == 1);
    LIVE("graph", 5 * MIB);
    LIVE("pool", 7 * MIB);
}

static void waits_for(CUstream stream, CUstream other) {
    CUevent event;
    OK(cuEventCreate(&event, 0));
    OK(cuEventRecord(event, other));
    OK(cuStreamWaitEvent(stream, event, 0));
}

/* A stream joins another stream's capture, and is destroyed. Its requests are in the graph, and end with the graph. */
static void joined(void) {
    CUstream origin, drawn;
    CUdeviceptr at;
    CUgraph graph;
    first_context();
    OK(cuStreamCreate(&origin, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&drawn, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(origin, CU_CAPTURE_RELAXED));
    waits_for(drawn, origin);
    OK(cuMemAllocAsync(&at, 3 * MIB, drawn));
    waits_for(origin, drawn);
    OK(cuStreamDestroy_v2(drawn));
    OK(cuStreamEndCapture(origin, &graph));
    LIVE("graph", 3 * MIB);
    OK(cuStreamCreate(&drawn, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(origin, CU_CAPTURE_RELAXED));
    waits_for(drawn, origin);
    OK(cuMemAllocAsync(&at, 5 * MIB, drawn));
    waits_for(origin, drawn);
    OK(cuStreamEndCapture(origin, &graph));
    OK(cuGraphDestroy(graph));
    EXPECT("cuda.kinds.graph.allocated_bytes", 8 * MIB);
}

/* Two threads capture their own default streams, which both have the name NULL. The requests of each thread belong to
 * that thread's graph. */
static void *capture_own(void *context) {
    CUdeviceptr at;
    CUgraph graph;
    OK(cuCtxSetCurrent(context));
    OK(cuStreamBeginCapture_v2_ptsz(NULL, CU_CAPTURE_RELAXED));
    OK(cuMemAllocAsync_ptsz(&at, 7 * MIB, NULL));
    OK(cuStreamEndCapture_ptsz(NULL, &graph));
    OK(cuGraphDestroy(graph));
    return NULL;
}

static void own_streams(void) {
    CUdeviceptr at;
    CUgraph graph;
    pthread_t thread;
    CUcontext context = first_context();
    OK(cuStreamBeginCapture_v2_ptsz(NULL, CU_CAPTURE_RELAXED));
    OK(cuMemAllocAsync_ptsz(&at, 5 * MIB, NULL));
    MUST(!pthread_create(&thread, NULL, capture_own, context) && !pthread_join(thread, NULL));
    OK(cuStreamEndCapture_ptsz(NULL, &graph));
    LIVE("graph", 5 * MIB);
    EXPECT("cuda.missed_frees", 0);
}

static CUstream captured_stream(void) {
    CUstream stream;
    first_context();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(stream, CU_CAPTURE_RELAXED));
    return stream;
}

/* A capture keeps its requests if a second capture of its stream cannot begin, or if its stream cannot be destroyed. */
static void captured_once(void) {
    CUstream stream = captured_stream();
    CUdeviceptr at;
    CUgraph graph;
    MUST(cuStreamBeginCapture_v2(stream, CU_CAPTURE_RELAXED) != 0);
    OK(cuMemAllocAsync(&at, 3 * MIB, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphDestroy(graph));
    LIVE("graph", 0);
}

static void kept_stream(void) {
    CUstream stream = captured_stream();
    CUdeviceptr at;
    CUgraph graph;
    OK(cuMemAllocAsync(&at, 5 * MIB, stream));
    sim_fail("cuStreamDestroy_v2", 1, 719, 1);
    MUST(cuStreamDestroy_v2(stream) == 719);
    OK(cuMemAllocAsync(&at, 7 * MIB, stream));
    OK(cuStreamEndCapture(stream, &graph));
    LIVE("graph", 12 * MIB);
}

/* Physical memory is mapped where the memory of a capture was, before the hook knows that the capture has ended. */
static void *end_broken(void *stream) {
    CUgraph graph;
    first_context();
    MUST(cuStreamEndCapture(stream, &graph) != 0);
    return NULL;
}

static void mapped_again(void) {
    CUstream stream = captured_stream();
    CUdeviceptr was, at;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUmemGenericAllocationHandle memory;
    pthread_t thread;
    int shared;
    OK(cuMemAllocAsync(&was, 4 * MIB, stream));
    MUST(cuStreamQuery(stream) != 0);
    sim_slow("cuStreamIsCapturing", 500000); /* a hook asks by this call whether the capture has ended */
    MUST(!pthread_create(&thread, NULL, end_broken, stream));
    for (at = 0; at != was; usleep(1000)) { /* until the driver has ended the capture */
        if (at) OK(cuMemAddressFree(at, 4 * MIB));
        OK(cuMemAddressReserve(&at, 4 * MIB, 0, was, 0));
    }
    prop.allocFlags.gpuDirectRDMACapable = 1;
    OK(cuMemCreate(&memory, 4 * MIB, &prop, 0));
    OK(cuMemMap(at, 4 * MIB, 0, memory, 0));
    OK(cuMemGetHandleForAddressRange(&shared, at, 4 * MIB, 1, 0));
    MUST(!pthread_join(thread, NULL));
    LIVE("graph", 0);
    say("expect cuda.blocks[kind=vmm].exported == 1");
}

/* The legacy stream cannot be captured: an attempt begins no capture. */
static void legacy_stream(void) {
    CUdeviceptr at;
    first_context();
    abi_find();
    MUST(cuStreamBeginCapture_v2(NULL, CU_CAPTURE_RELAXED) != 0);
    sim_count_reset();
    OK(cuMemAlloc_v2(&at, 100 * MIB));
    if (has_memstow) MUST(sim_count("cuMemGetInfo_v2") == 1);
    LIVE("device", 100 * MIB);
}

/* Captures more streams at the same time than memstow has room for. */
static void many_captures(void) {
    enum { STREAMS = 70 };
    CUstream streams[STREAMS];
    CUdeviceptr at;
    CUgraph graph;
    first_context();
    for (int i = 0; i < STREAMS; i++) {
        OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
        OK(cuStreamBeginCapture_v2(streams[i], CU_CAPTURE_RELAXED));
        OK(cuMemAllocAsync(&at, MIB, streams[i]));
    }
    for (int i = 0; i < STREAMS; i++) {
        OK(cuStreamEndCapture(streams[i], &graph));
        OK(cuGraphDestroy(graph));
    }
    LIVE("graph", 0);
}

/* The driver's figures are those of the current context's device, not of the device whose memory is allocated. */
static void figures(void) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 1}};
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 1}};
    CUmemoryPool pool;
    CUdeviceptr at;
    CUmemGenericAllocationHandle handle;
    first_context();
    sim_set_capacity(0, (size_t)3 << 30);
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&at, 2 * MIB, pool, NULL));
    OK(cuMemCreate(&handle, 100 * MIB, &prop, 0));
    EXPECT("cuda.devices[device=1].live_bytes", 102 * MIB);
    EXPECT("cuda.devices[device=0].total_bytes", (size_t)3 << 30);
}

/* The reset of one device does not end memory of another device, nor the handle of its physical memory. cudaDeviceReset
 * resets the device that the thread has set, even while the thread has no current context. */
static void resets(void) {
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 1}};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr at;
    first_context();
    OK(cuMemCreate(&handle, 4 * MIB, &prop, 0));
    OK(cudaSetDevice(0));
    OK(cudaDeviceReset());
    OK(cuMemRelease(handle));
    LIVE("vmm", 0);
    EXPECT("cuda.foreign_frees", 0);
    first_context();
    OK(cuMemAlloc_v2(&at, 8 * MIB));
    OK(cuCtxSetCurrent(NULL));
    OK(cudaSetDevice(2));
    OK(cuCtxSetCurrent(NULL));
    OK(cudaDeviceReset());
    LIVE("device", 8 * MIB);
}

/* Memory of a host pool counts as host memory: from a pool that the program made, and from the host's default pool,
 * whose creation memstow does not see. Memory from a device's default pool does not count as host memory, even if it is
 * requested by the pool's handle. */
static void host_pools(void) {
    CUmemPoolProps props = {.allocType = 1, .location = {2, 0}};
    CUmemLocation host = {2, 0}, device = {1, 2};
    CUmemoryPool own, first, of_device;
    CUdeviceptr at[4];
    first_context();
    int (*first_of)(CUmemoryPool *, CUmemLocation *, int);
    MUST(first_of = (int (*)(CUmemoryPool *, CUmemLocation *, int))dlsym(RTLD_DEFAULT, "cuMemGetDefaultMemPool"));
    OK(cuMemPoolCreate(&own, &props));
    OK(first_of(&first, &host, 1));
    OK(first_of(&of_device, &device, 1));
    OK(cuMemAllocFromPoolAsync(&at[0], MIB, own, NULL));
    OK(cuMemAllocFromPoolAsync(&at[1], 2 * MIB, first, NULL));
    OK(cuMemAllocFromPoolAsync(&at[2], 4 * MIB, first, NULL));
    OK(cuMemAllocFromPoolAsync(&at[3], 8 * MIB, of_device, NULL));
    *(char *)(uintptr_t)at[1] = 1;
    OK(cuMemFreeAsync(at[2], NULL));
    LIVE("pinned", 3 * MIB);
    LIVE("pool", 8 * MIB);
    EXPECT("cuda.devices[device=2].live_bytes", 8 * MIB);
    EXPECT("cuda.foreign_frees", 0);
}

/* Memory of a managed pool counts as managed memory of the device that the pool prefers. If the pool prefers no device,
 * the memory counts for the caller's device. */
static void managed_pools(void) {
    CUmemPoolProps on_device = {.allocType = 2, .location = {1, 2}}, on_host = {.allocType = 2, .location = {2, 0}};
    CUmemPoolProps anywhere = {.allocType = 2}, shared = {.allocType = 2, .location = {1, 2}, .handleTypes = 1};
    CUmemLocation none = {0, 0};
    CUmemoryPool pools[4];
    CUdeviceptr at[5];
    first_context();
    int (*first_of)(CUmemoryPool *, CUmemLocation *, int);
    MUST(first_of = (int (*)(CUmemoryPool *, CUmemLocation *, int))dlsym(RTLD_DEFAULT, "cuMemGetDefaultMemPool"));
    MUST(cuMemPoolCreate(&pools[0], &shared));
    OK(cuMemPoolCreate(&pools[0], &on_device));
    OK(cuMemPoolCreate(&pools[1], &on_host));
    OK(cuMemPoolCreate(&pools[2], &anywhere));
    OK(first_of(&pools[3], &none, 2));
    for (int i = 0; i < 4; i++) OK(cuMemAllocFromPoolAsync(&at[i], MIB << i, pools[i], NULL));
    OK(cuMemAllocFromPoolAsync(&at[4], 16 * MIB, pools[0], NULL));
    OK(cuCtxSynchronize());
    for (int i = 0; i < 4; i++) *(char *)(uintptr_t)at[i] = 1; /* the host sees it */
    OK(cuMemFreeAsync(at[4], NULL));
    LIVE("managed", 15 * MIB);
    LIVE("pinned", 0);
    LIVE("pool", 0);
    EXPECT("cuda.devices[device=2].live_bytes", MIB);
    EXPECT("cuda.devices[device=0].live_bytes", 14 * MIB);
    EXPECT("cuda.foreign_frees", 0);
}

/* An entry that memstow does not know is passed on and noted, on every route. */
static void unknown(void) {
    CUdeviceptr at;
    int status, (*conjure)(CUdeviceptr *, size_t);
    first_context();
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    MUST(library && !dlsym(library, "cuMemVanish") && dlerror());
    MUST(dlsym(library, "cuMemcpyHtoD_v2") && dlsym(library, "cuArray3DGetDescriptor_v2"));
    MUST(dlsym(library, "cuMemGetConjured") && dlsym(library, "cuMemGetDefaultMemPool"));
    EXPECT("cuda.unknown_entries", 3);
    MUST(conjure = (int (*)(CUdeviceptr *, size_t))dlsym(library, "cuMemConjure"));
    OK(conjure(&at, MIB));
    OK(cuMemFree_v2(at)); /* frees memory of the unknown entry */
    OK(cuGetProcAddress_v2("cuMemConjure", (void **)&conjure, 13000, 0, &status));
    MUST(conjure);
    OK(conjure(&at, MIB));
    EXPECT("lost.cuda", 3);
    EXPECT("cuda.foreign_frees", 1);
    LIVE("device", 0);
}

/* A pool belongs to no context. So memory from a pool outlives the context of its stream, whatever kind of memory it
 * is. The program can still free this memory, and the ledger notices. */
static void pools_outlive_contexts(void) {
    CUmemPoolProps props = {.allocType = 1, .location = {2, 0}};
    CUcontext first = first_context(), own;
    CUmemoryPool of_host, of_device;
    CUdeviceptr host[2], kept[2];
    void *pinned;
    OK(cuMemPoolCreate(&of_host, &props));
    props.location = (CUmemLocation){CU_MEM_LOCATION_DEVICE, 0};
    OK(cuMemPoolCreate(&of_device, &props));
    OK(cuCtxCreate_v2(&own, 0, 0));
    for (int i = 0; i < 2; i++) {
        OK(cuMemAllocFromPoolAsync(&host[i], MIB, of_host, NULL));
        OK(cuMemAllocFromPoolAsync(&kept[i], 2 * MIB, of_device, NULL));
    }
    OK(cuMemHostAlloc(&pinned, 4 * MIB, 0)); /* the context's own */
    OK(cuCtxSynchronize());
    OK(cuCtxDestroy_v2(own));
    OK(cuCtxSetCurrent(first));
    OK(cuMemFreeAsync(host[0], NULL));
    OK(cuMemFreeAsync(kept[0], NULL));
    OK(cuCtxSynchronize());
    *(char *)(uintptr_t)host[1] = 1;
    OK(cuMemsetD8_v2(kept[1], 1, MIB));
    LIVE("pinned", MIB);
    LIVE("pool", 2 * MIB);
    EXPECT("cuda.foreign_frees", 0);
    EXPECT("cuda.missed_frees", 0);
}

/* When a context ends, only its own memory ends. */
static void contexts(void) {
    CUcontext own;
    CUdeviceptr at;
    void *plain;
    CUcontext first = first_context();
    OK(cuMemAlloc_v2(&at, 1 * MIB));
    OK(cuCtxCreate_v2(&own, 0, 0));
    OK(cuMemAlloc_v2(&at, 2 * MIB));
    OK(cuMemAllocAsync(&at, 3 * MIB, NULL));
    OK(cuCtxDestroy_v2(own));
    OK(cuCtxSetCurrent(first));
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&plain, 4 * MIB));
    OK(cudaMalloc(&plain, 5 * MIB));
    OK(cudaDeviceReset());
    OK(cudaSetDevice(1));
    OK(cudaMalloc(&plain, 6 * MIB));
    OK(cudaSetDevice(2));
    OK(cudaMalloc(&plain, 7 * MIB));
    LIVE("device", (1 + 6 + 7) * MIB);
    LIVE("pool", 3 * MIB);
    EXPECT("cuda.devices[device=0].live_bytes", 4 * MIB);
    EXPECT("cuda.devices[device=1].live_bytes", 6 * MIB);
    EXPECT("cuda.devices[device=1].peak_bytes", 9 * MIB);
    EXPECT("cuda.devices[device=2].live_bytes", 7 * MIB);
}

/* The driver may release a context, but answer with the error of an earlier kernel. memstow must not release the
 * context again, because that would take a reference of the program's. */
static void released_once(void) {
    CUdeviceptr at;
    abi_find();
    first_context();
    OK(cuMemAlloc_v2(&at, 1 * MIB));
    sim_count_reset();
    sim_fail("cuDevicePrimaryCtxRelease_v2", 1, 719, 1);
    OK(cuDevicePrimaryCtxReset_v2(0));
    sim_fail(NULL, 0, 0, 0);
    if (has_memstow) MUST(sim_count("cuDevicePrimaryCtxRelease_v2") == 1);
    OK(cuMemAlloc_v2(&at, 2 * MIB));
    LIVE("device", 2 * MIB);
}

/* Two threads release the primary context at the same time: the last one ends it. */
static void *release_slowly(void *unused) {
    OK(cuDevicePrimaryCtxRelease_v2(0));
    return unused;
}

static void two_releases(void) {
    CUcontext again;
    CUdeviceptr at;
    pthread_t last;
    first_context();
    OK(cuDevicePrimaryCtxRetain(&again, 0));
    OK(cuMemAlloc_v2(&at, 3 * MIB));
    sim_slow("cuDevicePrimaryCtxRelease_v2", 500000);
    MUST(!pthread_create(&last, NULL, release_slowly, NULL));
    usleep(200000);
    OK(cuDevicePrimaryCtxRelease(0));
    MUST(!pthread_join(last, NULL));
    LIVE("device", 0);
}

/* A reset ends the primary context, but no context of the program, no pool, and no physical memory. */
static void reset_of_one(void) {
    CUcontext own;
    CUdeviceptr at, plain, pooled, managed;
    void *pinned;
    first_context();
    OK(cuMemAlloc_v2(&at, 1 * MIB));
    OK(cuMemAllocAsync(&at, 128 * MIB, NULL));
    OK(cuMemHostAlloc(&pinned, 2 * MIB, 0));
    OK(cuCtxCreate_v2(&own, 0, 0));
    OK(cuMemAlloc_v2(&plain, 4 * MIB));
    OK(cuMemAllocManaged(&managed, 8 * MIB, 1));
    OK(cuMemAllocAsync(&pooled, 16 * MIB, NULL));
    CUmemGenericAllocationHandle handle = create(32 * MIB);
    OK(cuDevicePrimaryCtxReset_v2(0));
    OK(cuMemFree_v2(plain));
    OK(cuMemFreeAsync(pooled, NULL));
    OK(cuMemRelease(handle));
    OK(cuMemAlloc_v2(&at, 64 * MIB));
    LIVE("device", 64 * MIB);
    LIVE("managed", 8 * MIB);
    LIVE("pinned", 0);
    LIVE("pool", 128 * MIB);
    LIVE("vmm", 0);
    EXPECT("cuda.foreign_frees", 0);
    EXPECT("cuda.missed_frees", 0);
}

/* The properties of each block. Blocks are told apart by their sizes. */
static void blocks(void) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}};
    CUcontext first = first_context(), second;
    CUstream stream, far;
    CUmemoryPool pool;
    CUdeviceptr at;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAlloc_v2(&at, 1048576));
    EXPECT("cuda.blocks[size_bytes=1048576].address", at);
    EXPECT("cuda.blocks[size_bytes=1048576].context", (uintptr_t)first);
    EXPECT("cuda.blocks[size_bytes=1048576].stream", 0);
    EXPECT("cuda.blocks[size_bytes=1048576].pool", 0);
    OK(cuMemAllocAsync(&at, 2097152, stream));
    EXPECT("cuda.blocks[size_bytes=2097152].stream", (uintptr_t)stream);
    EXPECT("cuda.blocks[size_bytes=2097152].context", (uintptr_t)first);
    OK(cuMemAllocFromPoolAsync(&at, 3145728, pool, stream));
    EXPECT("cuda.blocks[size_bytes=3145728].pool", (uintptr_t)pool);
    OK(cuMemAllocAsync_ptsz(&at, 4194304, NULL));
    EXPECT("cuda.blocks[size_bytes=4194304].stream", 2); /* the thread's own stream */
    OK(cuDevicePrimaryCtxRetain(&second, 2));
    OK(cuCtxSetCurrent(second));
    OK(cuStreamCreate(&far, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSetCurrent(first));
    OK(cuMemAllocAsync(&at, 5242880, far)); /* from the pool of the stream's device */
    EXPECT("cuda.blocks[size_bytes=5242880].device", 2);
    EXPECT("cuda.blocks[size_bytes=5242880].stream", (uintptr_t)far);
    say("expect cuda.blocks[size_bytes=5242880].age_seconds < 100");
    say("expect cuda.blocks[size_bytes=1048576].age_seconds > 0");
    EXPECT("cuda.devices[device=2].live_bytes", 5242880);
}

/* Memory from a pool of another device counts for that device. A block whose handle was exported is marked so. */
static void pools(void) {
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 1}};
    CUmemoryPool pool;
    CUdeviceptr at;
    CUipcMemHandle handle;
    void *plain;
    first_context();
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&at, 2 * MIB, pool, NULL));
    OK(cuMemAllocAsync(&at, MIB, NULL));
    OK(cudaMalloc(&plain, 3 * MIB));
    OK(cudaIpcGetMemHandle(&handle, plain));
    EXPECT("cuda.devices[device=1].live_bytes", 2 * MIB);
    EXPECT("cuda.devices[device=0].live_bytes", 4 * MIB);
    say("expect cuda.blocks[size_bytes=%zu].pool > 0", 2 * MIB);
    say("expect cuda.blocks[size_bytes=%zu].exported == 1", 3 * MIB);
}

/* No memory: the request is noted. */
static void refused(void) {
    CUdeviceptr at;
    size_t available, total;
    first_context();
    OK(cuMemAlloc_v2(&at, 20 * MIB));
    MUST(cuMemAlloc_v2(&at, (size_t)40 << 30) == CUDA_ERROR_OUT_OF_MEMORY);
    MUST(cuMemAllocAsync(&at, (size_t)50 << 30, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuMemGetInfo_v2(&available, &total));
    EXPECT("cuda.refused.requests", 2);
    EXPECT("cuda.refused.last_bytes", (size_t)50 << 30);
    EXPECT("cuda.refused.live_bytes", 20 * MIB);
    EXPECT("cuda.devices[0].total_bytes", total);
    EXPECT("cuda.devices[0].driver_used_bytes", total - available);
    EXPECT("totals.cuda.live_bytes", 20 * MIB);
}

/* A child has none of its parent's device memory, and the driver refuses every call of the child. memstow passes the
 * child's frees on to the driver. */
static void forks(void) {
    CUdeviceptr at;
    first_context();
    OK(cuMemAlloc_v2(&at, 2 * MIB));
    pid_t child = fork();
    if (child == 0) {
        CUdeviceptr none;
        MUST(cuMemFree_v2(at) != 0);
        MUST(cuMemAlloc_v2(&none, MIB) != 0);
        free(malloc(100));
        say("expect@%d totals.cuda.allocated_bytes == 0", (int)getpid());
        say("expect@%d cuda.foreign_frees == 1", (int)getpid());
        exit(0);
    }
    int status;
    MUST(waitpid(child, &status, 0) == child && status == 0);
    OK(cuMemAlloc_v2(&at, MIB));
    EXPECT("totals.cuda.live_bytes", 3 * MIB);
    EXPECT("cuda.foreign_frees", 0);
}

static void whose(uint64_t address, uint64_t start, uint64_t size, uint32_t model, uint32_t node) {
    struct memstow_block block;
    MUST(abi_memstow_blocks(&address, 1, MEMSTOW_INSIDE, &block, sizeof block) == (size != 0));
    MUST(block.start == start && block.size == size && block.model == model && block.node == node);
}

/* Owners of device memory: by scope, by range, by both. */
static void owners(void) {
    struct memstow_figures figures = {.size = sizeof figures};
    CUdeviceptr segment, tensor;
    first_context();
    abi_find();
    if (!has_memstow) return;
    uint32_t a = (uint32_t)abi_memstow_owner_open(MEMSTOW_MODEL, "a", "a.bin", 0, 1);
    uint32_t b = (uint32_t)abi_memstow_owner_open(MEMSTOW_MODEL, "b", "b.bin", 0, 2);
    uint32_t node = (uint32_t)abi_memstow_owner_open(MEMSTOW_NODE, "load", "", 0, 3);
    int64_t run = abi_memstow_run_begin("run-1");
    OK(abi_memstow_scope_enter(a));
    OK(abi_memstow_scope_enter(node));
    OK(cuMemAllocAsync(&tensor, 3 * MIB, NULL));
    OK(abi_memstow_scope_leave(node));
    OK(abi_memstow_scope_leave(a));
    OK(cuMemAlloc_v2(&segment, 20 * MIB));
    OK(abi_memstow_assign(a, (void *)segment, MIB));
    OK(abi_memstow_assign(b, (void *)(segment + 4 * MIB), 2 * MIB));
    OK(abi_memstow_assign(b, (void *)(segment + 10 * MIB), MIB));
    OK(abi_memstow_assign(a, (void *)(segment + 10 * MIB), MIB / 2));
    OK(abi_memstow_release_range((void *)segment, MIB / 4));
    MUST(abi_memstow_assign(a, (void *)(segment + 20 * MIB), MIB) == -6);
    whose(tensor + 100, tensor, 3 * MIB, a, node);
    whose(segment + 5 * MIB, segment + 4 * MIB, 2 * MIB, b, 0); /* a part of another model's block */
    whose(segment + 18 * MIB, segment, 20 * MIB, 0, 0);
    whose(segment + 20 * MIB, 0, 0, 0, 0);
    OK(abi_memstow_run_end((uint32_t)run, MEMSTOW_OK));
    OK(abi_memstow_owner_figures(a, &figures));
    MUST(figures.cuda_bytes == 3 * MIB + 3 * MIB / 4 + MIB / 2);
    EXPECT("owners[name=a].cuda_bytes", 3 * MIB + 3 * MIB / 4 + MIB / 2);
    EXPECT("owners[name=b].cuda_bytes", 2 * MIB + MIB / 2);
    EXPECT("owners[name=load].cuda_bytes", 3 * MIB);
    EXPECT("owners[name=run-1].cuda_bytes", 23 * MIB);
    EXPECT("totals.cuda.live_bytes", 23 * MIB);
    EXPECT("totals.cuda.live_blocks", 2);
    EXPECT("cuda.sites[model=a].live_bytes", 3 * MIB + 3 * MIB / 4 + MIB / 2);
    say("expect cuda.blocks[part_of=%llu].length == 4", (unsigned long long)segment);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {{"frees", frees},
                 {"physical", physical},
                 {"pinned", pinned},
                 {"arrays", arrays},
                 {"graphs", graphs},
                 {"graphs_in_graphs", graphs_in_graphs},
                 {"contexts", contexts},
                 {"pools", pools},
                 {"host_pools", host_pools},
                 {"managed_pools", managed_pools},
                 {"pools_outlive_contexts", pools_outlive_contexts},
                 {"refused", refused},
                 {"forks", forks},
                 {"owners", owners},
                 {"captures", captures},
                 {"joined", joined},
                 {"figures", figures},
                 {"resets", resets},
                 {"unknown", unknown},
                 {"reset_of_one", reset_of_one},
                 {"blocks", blocks},
                 {"released_once", released_once},
                 {"own_streams", own_streams},
                 {"captured_once", captured_once},
                 {"kept_stream", kept_stream},
                 {"mapped_again", mapped_again},
                 {"legacy_stream", legacy_stream},
                 {"many_captures", many_captures},
                 {"two_releases", two_releases}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (count < 2)
            puts(cases[i].name);
        else if (!strcmp(cases[i].name, arguments[1]))
            cases[i].run();
    }
    return 0;
}
