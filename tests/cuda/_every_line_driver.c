/* _every_line_driver.c — a case for each line of the driver; see _every_line.c. */
#include "_every_line.h"

/* --- shared by several cases --- */

static size_t granules(struct worker *w) { return (w->granules++ * (THREADS + 1) + (size_t)w->number + 1) * 2 * MIB; }

static void is_bound(size_t bytes) { say("expect cuda.blocks[size_bytes=%zu].bound == true", bytes); }

static void ended(enum kind kind, uint64_t bytes) {
    add(&live_bytes[kind], -bytes);
    add(&live_blocks[kind], (uint64_t)-1);
}

static cuda_memory memory_of(size_t bytes, int handle_types) {
    struct room room = {on_device(handle_types), {0}};
    cuda_memory memory;
    OK(f.cuMemCreate(&memory, bytes, &room.properties, 0));
    return memory;
}

static cuda_address range_of(size_t bytes) {
    cuda_address at;
    OK(f.cuMemAddressReserve(&at, bytes, 0, 0, 0));
    kept(RESERVED, bytes);
    return at;
}

/* Physical memory that only a mapping holds. */
static cuda_address mapped(size_t bytes) {
    cuda_address at = range_of(bytes);
    cuda_memory memory = memory_of(bytes, 0);
    OK(f.cuMemMap(at, bytes, 0, memory, 0));
    OK(f.cuMemRelease(memory));
    return at;
}

/* --- the driver: linear memory --- */

CASE(cuMemAlloc) {
    unsigned at, bytes = (unsigned)odd(w);
    OK(f.cuMemAlloc(&at, bytes));
    kept(DEVICE, bytes);
}
CASE(cuMemAlloc_v2) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAlloc_v2(&at, bytes));
    kept(DEVICE, bytes);
    say("expect cuda.blocks[size_bytes=%zu].address == %zu", bytes, (size_t)at);
}
CASE(cuMemAllocPitch_v2) {
    size_t pitch, width = odd(w);
    cuda_address at;
    OK(f.cuMemAllocPitch_v2(&at, &pitch, width, 5, 4));
    kept(DEVICE, pitch * 5);
}
CASE(cuMemAllocManaged) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAllocManaged(&at, bytes, 1));
    kept(MANAGED, bytes);
}
CASE(cuMemFree) {
    unsigned at, bytes = (unsigned)odd(w);
    OK(f.cuMemAlloc(&at, bytes));
    OK(f.cuMemFree(at));
    made(DEVICE, bytes);
}
CASE(cuMemFree_v2) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAlloc_v2(&at, bytes));
    OK(f.cuMemFree_v2(at));
    made(DEVICE, bytes);
    OK(f.cuMemAllocAsync(&at, bytes, w->stream));
    OK(f.cuMemFree_v2(at));
    made(POOL, bytes);
    OK(f.cuMemFree_v2(0));
}

/* --- the driver: memory in the order of streams --- */

CASE(cuMemAllocAsync) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAllocAsync(&at, bytes, w->stream));
    kept(POOL, bytes);
    say("expect cuda.blocks[size_bytes=%zu].stream == %zu", bytes, (size_t)w->stream);
}
CASE(cuMemAllocAsync_ptsz) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAllocAsync_ptsz(&at, bytes, NULL));
    kept(POOL, bytes);
    say("expect cuda.blocks[size_bytes=%zu].stream == 2", bytes);
}
CASE(cuMemAllocFromPoolAsync) { keep_in(w->pool, w); }
CASE(cuMemAllocFromPoolAsync_ptsz) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAllocFromPoolAsync_ptsz(&at, bytes, w->pool, NULL));
    kept(POOL, bytes);
    say("expect cuda.blocks[size_bytes=%zu].stream == 2", bytes);
}
CASE(cuMemFreeAsync) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAllocAsync(&at, bytes, w->stream));
    OK(f.cuMemFreeAsync(at, w->stream));
    made(POOL, bytes);
}
CASE(cuMemFreeAsync_ptsz) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAllocAsync_ptsz(&at, bytes, NULL));
    OK(f.cuMemFreeAsync_ptsz(at, NULL));
    made(POOL, bytes);
}

/* --- the driver: arrays --- */

enum { FLOATS = 0x20 };

CASE(cuArrayCreate_v2) {
    struct cuda_array_2d is = {odd(w) / 4, 3, FLOATS, 1};
    cuda_handle array;
    OK(f.cuArrayCreate_v2(&array, &is));
    kept(ARRAY, is.width * 3 * 4);
}
CASE(cuArray3DCreate_v2) {
    struct cuda_array_3d is = {odd(w) / 4, 3, 2, FLOATS, 1, 0};
    cuda_handle array;
    OK(f.cuArray3DCreate_v2(&array, &is));
    kept(ARRAY, is.width * 6 * 4);
}
CASE(cuArrayDestroy) {
    struct cuda_array_2d is = {odd(w) / 4, 0, FLOATS, 1};
    cuda_handle array;
    OK(f.cuArrayCreate_v2(&array, &is));
    OK(f.cuArrayDestroy(array));
    made(ARRAY, is.width * 4);
}
CASE(cuMipmappedArrayCreate) {
    struct cuda_array_3d is = {odd(w) / 4, 4, 0, FLOATS, 1, 0};
    cuda_handle array;
    OK(f.cuMipmappedArrayCreate(&array, &is, 2));
    kept(ARRAY, (is.width * 4 + is.width / 2 * 2) * 4);
}
CASE(cuMipmappedArrayDestroy) {
    struct cuda_array_3d is = {odd(w) / 4, 4, 0, FLOATS, 1, 0};
    cuda_handle array;
    OK(f.cuMipmappedArrayCreate(&array, &is, 1));
    OK(f.cuMipmappedArrayDestroy(array));
    made(ARRAY, is.width * 16);
}

/* --- the driver: host memory --- */

CASE(cuMemAllocHost) {
    unsigned bytes = (unsigned)odd(w);
    void *at;
    OK(f.cuMemAllocHost(&at, bytes));
    kept(PINNED, bytes);
}
CASE(cuMemAllocHost_v2) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cuMemAllocHost_v2(&at, bytes));
    kept(PINNED, bytes);
}
CASE(cuMemHostAlloc) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cuMemHostAlloc(&at, bytes, 0));
    kept(PINNED, bytes);
}
CASE(cuMemFreeHost) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cuMemHostAlloc(&at, bytes, 0));
    OK(f.cuMemFreeHost(at));
    made(PINNED, bytes);
}
CASE(cuMemHostRegister) {
    size_t bytes = odd(w);
    OK(f.cuMemHostRegister(own_memory(bytes), bytes, 0));
    kept(REGISTERED, bytes);
}
CASE(cuMemHostRegister_v2) {
    size_t bytes = odd(w);
    OK(f.cuMemHostRegister_v2(own_memory(bytes), bytes, 0));
    kept(REGISTERED, bytes);
}
CASE(cuMemHostUnregister) {
    size_t bytes = odd(w);
    void *at = own_memory(bytes);
    OK(f.cuMemHostRegister_v2(at, bytes, 0));
    OK(f.cuMemHostUnregister(at));
    made(REGISTERED, bytes);
}

/* --- the driver: physical memory and addresses --- */

CASE(cuMemCreate) {
    size_t bytes = granules(w);
    memory_of(bytes, 0);
    kept(VMM, bytes);
}
CASE(cuMemRelease) {
    size_t bytes = granules(w);
    OK(f.cuMemRelease(memory_of(bytes, 0)));
    made(VMM, bytes);
}
CASE(cuMemRetainAllocationHandle) {
    size_t bytes = granules(w), gone = granules(w);
    cuda_address at = mapped(bytes), other = mapped(gone);
    cuda_memory memory;
    OK(f.cuMemRetainAllocationHandle(&memory, (void *)(at + MIB)));
    OK(f.cuMemUnmap(at, bytes)); /* the handle holds it */
    kept(VMM, bytes);
    OK(f.cuMemRetainAllocationHandle(&memory, (void *)other));
    OK(f.cuMemUnmap(other, gone));
    OK(f.cuMemRelease(memory));
    made(VMM, gone);
}
CASE(cuMemMap) {
    size_t bytes = granules(w);
    mapped(bytes);
    kept(VMM, bytes);
}
CASE(cuMemUnmap) {
    size_t bytes = granules(w);
    OK(f.cuMemUnmap(mapped(bytes), bytes));
    made(VMM, bytes);
}
CASE(cuMemAddressReserve) { range_of(granules(w)); }
CASE(cuMemAddressFree) {
    size_t bytes = granules(w);
    OK(f.cuMemAddressFree(range_of(bytes), bytes));
    ended(RESERVED, bytes);
}
CASE(cuMemExportToShareableHandle) {
    size_t bytes = granules(w);
    int shared;
    OK(f.cuMemExportToShareableHandle(&shared, memory_of(bytes, AS_FILE), AS_FILE, 0));
    kept(VMM, bytes);
    close(shared);
    is_exported(bytes);
}
CASE(cuMemImportFromShareableHandle) {
    size_t bytes = granules(w);
    cuda_memory memory;
    int shared;
    OK(f.cuMemExportToShareableHandle(&shared, memory_of(bytes, AS_FILE), AS_FILE, 0));
    kept(VMM, bytes);
    OK(f.cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)shared, AS_FILE));
    kept(IMPORTED, 0);
    OK(f.cuMemImportFromShareableHandle(&memory, (void *)(intptr_t)shared, AS_FILE));
    OK(f.cuMemRelease(memory));
    made(IMPORTED, 0);
    close(shared);
}

static cuda_memory new_multicast(size_t bytes) {
    struct cuda_multicast is = {.devices = 1, .size = bytes};
    cuda_memory memory;
    OK(f.cuMulticastCreate(&memory, &is));
    OK(h.cuMulticastAddDevice(memory, 0));
    kept(IMPORTED, 0);
    return memory;
}

CASE(cuMulticastCreate) {
    size_t bytes = granules(w);
    new_multicast(bytes);
    OK(f.cuMemRelease(new_multicast(bytes)));
    ended(IMPORTED, 0);
}
CASE(cuMulticastBindMem) {
    size_t bytes = granules(w);
    OK(f.cuMulticastBindMem(new_multicast(bytes), 0, memory_of(bytes, 0), 0, bytes, 0));
    kept(VMM, bytes);
    is_bound(bytes);
}
CASE(cuMulticastBindAddr) {
    size_t bytes = granules(w);
    OK(f.cuMulticastBindAddr(new_multicast(bytes), 0, mapped(bytes), bytes, 0));
    kept(VMM, bytes);
    is_bound(bytes);
}
CASE(cuMulticastBindMem_v2) {
    size_t bytes = granules(w);
    OK(f.cuMulticastBindMem_v2(new_multicast(bytes), 0, 0, memory_of(bytes, 0), 0, bytes, 0));
    kept(VMM, bytes);
    is_bound(bytes);
}
CASE(cuMulticastBindAddr_v2) {
    size_t bytes = granules(w);
    OK(f.cuMulticastBindAddr_v2(new_multicast(bytes), 0, 0, mapped(bytes), bytes, 0));
    kept(VMM, bytes);
    is_bound(bytes);
}
CASE(cuLogicalEndpointBindMem) {
    size_t bytes = granules(w);
    OK(f.cuLogicalEndpointBindMem(1, 0, 0, memory_of(bytes, 0), 0, bytes, 0));
    kept(VMM, bytes);
    is_bound(bytes);
}
CASE(cuLogicalEndpointBindAddr) {
    size_t bytes = granules(w);
    OK(f.cuLogicalEndpointBindAddr(1, 0, 0, (void *)mapped(bytes), bytes, 0));
    kept(VMM, bytes);
    is_bound(bytes);
}
CASE(cuMemGetAddressRange_v2) {
    size_t bytes = odd(w), found;
    cuda_address at, start;
    OK(f.cuMemAlloc_v2(&at, bytes));
    kept(DEVICE, bytes);
    OK(f.cuMemGetAddressRange_v2(&start, &found, at + bytes / 2));
    MUST(start == at && found == bytes);
}
enum { RANGE_START = 11, RANGE_SIZE = 12 };
CASE(cuPointerGetAttribute) {
    size_t bytes = odd(w), found = 0;
    cuda_address at;
    OK(f.cuMemAlloc_v2(&at, bytes));
    kept(DEVICE, bytes);
    OK(f.cuPointerGetAttribute(&found, RANGE_SIZE, at));
    MUST(found == bytes);
}
CASE(cuPointerGetAttributes) {
    int which[] = {RANGE_START, RANGE_SIZE};
    size_t bytes = odd(w), found = 0;
    cuda_address at, start = 0;
    void *out[] = {&start, &found};
    OK(f.cuMemAlloc_v2(&at, bytes));
    kept(DEVICE, bytes);
    OK(f.cuPointerGetAttributes(2, which, out, at + 1));
    MUST(start == at && found == bytes);
}
CASE(cuMemGetHandleForAddressRange) {
    struct room room = {on_device(0), {0}};
    size_t bytes = granules(w);
    cuda_address at = range_of(bytes);
    cuda_memory memory;
    int shared;
    room.more[9] = 1; /* allocFlags.gpuDirectRDMACapable: no other memory has this flag */
    OK(f.cuMemCreate(&memory, bytes, &room.properties, 0));
    OK(f.cuMemMap(at, bytes, 0, memory, 0));
    kept(VMM, bytes);
    OK(f.cuMemGetHandleForAddressRange(&shared, at, bytes, 1, 0));
    close(shared);
    is_exported(bytes);
}

/* --- the driver: pools, other processes, graphs --- */

CASE(cuMemPoolCreate) { keep_in(new_pool(0), w); }
enum { THRESHOLD = 4 };
CASE(cuMemPoolGetAttribute) {
    uint64_t value = 1;
    OK(f.cuMemPoolGetAttribute(w->pool, CUDA_POOL_USED, &value));
    MUST(value % 512 == 0);
}
CASE(cuMemPoolSetAttribute) {
    uint64_t value = 64 * MIB, now = 0;
    cuda_handle pool = new_pool(0);
    keep_in(pool, w);
    OK(f.cuMemPoolSetAttribute(pool, THRESHOLD, &value));
    OK(f.cuMemPoolGetAttribute(pool, THRESHOLD, &now));
    MUST(now == value);
}
CASE(cuMemPoolTrimTo) {
    UNUSED;
    OK(f.cuMemPoolTrimTo(w->pool, 0));
}
CASE(cuMemPoolDestroy) {
    cuda_handle pool = new_pool(0);
    keep_in(pool, w);
    OK(f.cuMemPoolDestroy(pool));
}
CASE(cuMemPoolImportPointer) {
    char data[64];
    size_t bytes;
    cuda_address at;
    OK(f.cuMemPoolExportPointer(data, in_shared_pool(w, &bytes)));
    OK(f.cuMemPoolImportPointer(&at, w->imported_pool, data));
    kept(IMPORTED, 0);
    OK(f.cuMemPoolImportPointer(&at, w->imported_pool, data));
    OK(f.cuMemFreeAsync(at, w->stream));
    made(IMPORTED, 0);
}
CASE(cuMemPoolExportPointer) {
    char data[64];
    size_t bytes;
    OK(f.cuMemPoolExportPointer(data, in_shared_pool(w, &bytes)));
    is_exported(bytes);
}
CASE(cuIpcGetMemHandle) {
    struct cuda_ipc_memory handle;
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAlloc_v2(&at, bytes));
    kept(DEVICE, bytes);
    OK(f.cuIpcGetMemHandle(&handle, at));
    is_exported(bytes);
}
CASE(cuIpcOpenMemHandle) {
    cuda_address at;
    OK(f.cuIpcOpenMemHandle(&at, next_handle(w), 1));
    kept(IMPORTED, 0);
}
CASE(cuIpcOpenMemHandle_v2) {
    cuda_address at;
    OK(f.cuIpcOpenMemHandle_v2(&at, next_handle(w), 1));
    kept(IMPORTED, 0);
}
CASE(cuIpcCloseMemHandle) {
    cuda_address at;
    OK(f.cuIpcOpenMemHandle_v2(&at, next_handle(w), 1));
    OK(f.cuIpcCloseMemHandle(at));
    made(IMPORTED, 0);
}
CASE(cuGraphAddMemAllocNode) {
    struct cuda_alloc_node params = asking(odd(w));
    cuda_handle node;
    OK(f.cuGraphAddMemAllocNode(&node, new_graph(), NULL, 0, &params));
    kept(GRAPH, params.bytes);
}
enum { EMPTY_NODE = 5 };
CASE(cuGraphAddNode) {
    struct cuda_node is = {.type = CUDA_NODE_ALLOC, .alloc = asking(odd(w))}, empty = {.type = EMPTY_NODE};
    cuda_handle node, graph = new_graph();
    OK(f.cuGraphAddNode(&node, graph, NULL, 0, &empty));
    OK(f.cuGraphAddNode(&node, graph, NULL, 0, &is));
    kept(GRAPH, is.alloc.bytes);
}
CASE(cuGraphAddNode_v2) {
    struct cuda_node is = {.type = CUDA_NODE_ALLOC, .alloc = asking(odd(w))}, empty = {.type = EMPTY_NODE};
    cuda_handle node, graph = new_graph();
    OK(f.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &empty));
    OK(f.cuGraphAddNode_v2(&node, graph, NULL, NULL, 0, &is));
    kept(GRAPH, is.alloc.bytes);
}
CASE(cuGraphDestroy) {
    struct cuda_alloc_node params = asking(odd(w));
    cuda_handle node, graph = new_graph();
    OK(f.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    OK(f.cuGraphDestroy(graph));
    made(GRAPH, params.bytes);
}

/* --- the driver: captures, figures --- */

CASE(cuStreamBeginCapture_v2) {
    cuda_handle stream = new_stream();
    OK(f.cuStreamBeginCapture_v2(stream, RELAXED));
    keep_captured(w, stream, false);
}
CASE(cuStreamBeginCapture_v2_ptsz) {
    OK(f.cuStreamBeginCapture_v2_ptsz(NULL, RELAXED));
    keep_captured(w, NULL, true);
}
CASE(cuStreamBeginCaptureToGraph) {
    cuda_handle stream = new_stream();
    OK(f.cuStreamBeginCaptureToGraph(stream, new_graph(), NULL, NULL, 0, RELAXED));
    keep_captured(w, stream, false);
}
CASE(cuStreamBeginCaptureToGraph_ptsz) {
    OK(f.cuStreamBeginCaptureToGraph_ptsz(NULL, new_graph(), NULL, NULL, 0, RELAXED));
    keep_captured(w, NULL, true);
}
CASE(cuStreamBeginRecaptureToGraph) {
    cuda_handle stream = new_stream();
    OK(f.cuStreamBeginRecaptureToGraph(stream, RELAXED, new_graph(), NULL, NULL));
    keep_captured(w, stream, false);
}
CASE(cuStreamBeginRecaptureToGraph_ptsz) {
    OK(f.cuStreamBeginRecaptureToGraph_ptsz(NULL, RELAXED, new_graph(), NULL, NULL));
    keep_captured(w, NULL, true);
}
CASE(cuStreamBeginCaptureToCig) {
    cuda_handle stream = new_stream();
    OK(f.cuStreamBeginCaptureToCig(stream, NULL));
    keep_captured(w, stream, false);
}
CASE(cuStreamBeginCaptureToCig_ptsz) {
    OK(f.cuStreamBeginCaptureToCig_ptsz(NULL, NULL));
    keep_captured(w, NULL, true);
}
CASE(cuStreamEndCaptureToCig) {
    cuda_handle stream = new_stream();
    UNUSED;
    OK(f.cuStreamBeginCaptureToCig(stream, NULL));
    OK(f.cuStreamEndCaptureToCig(stream));
}
CASE(cuStreamEndCaptureToCig_ptsz) {
    UNUSED;
    OK(f.cuStreamBeginCaptureToCig_ptsz(NULL, NULL));
    OK(f.cuStreamEndCaptureToCig_ptsz(NULL));
}
CASE(cuStreamEndCapture) { end_graph(w, new_stream(), false, f.cuStreamEndCapture); }
CASE(cuStreamEndCapture_ptsz) { end_graph(w, NULL, true, f.cuStreamEndCapture_ptsz); }
CASE(cuStreamDestroy) { end_stream(w, f.cuStreamDestroy); }
CASE(cuStreamDestroy_v2) { end_stream(w, f.cuStreamDestroy_v2); }
CASE(cuStreamSynchronize) { OK(f.cuStreamSynchronize(w->stream)); }
CASE(cuStreamSynchronize_ptsz) { OK(f.cuStreamSynchronize_ptsz(w->stream)); }
CASE(cuEventSynchronize) {
    cuda_handle event;
    OK(h.cuEventCreate(&event, 0));
    OK(h.cuEventRecord(event, w->stream));
    OK(f.cuEventSynchronize(event));
    OK(h.cuEventDestroy_v2(event));
}
CASE(cuGetErrorName) {
    const char *text = NULL;
    UNUSED;
    OK(f.cuGetErrorName(2, &text));
    MUST(text);
}
CASE(cuGetErrorString) {
    const char *text = NULL;
    UNUSED;
    OK(f.cuGetErrorString(2, &text));
    MUST(text);
}
CASE(cuMemGetInfo_v2) {
    size_t available = 1, total = 0;
    UNUSED;
    OK(f.cuMemGetInfo_v2(&available, &total));
    MUST(available < total);
}

/* --- the driver: access rights --- */

CASE(cuMemPoolSetAccess) {
    struct {
        int type, id, flags;
    } access = {ON_DEVICE, 1, 3};
    OK(f.cuMemPoolSetAccess(w->pool, &access, 1));
}
CASE(cuPointerSetAttribute) {
    enum { SYNC_MEMOPS = 6 };
    size_t bytes = odd(w);
    cuda_address at;
    int yes = 1;
    OK(f.cuMemAlloc_v2(&at, bytes));
    kept(DEVICE, bytes);
    OK(f.cuPointerSetAttribute(&yes, SYNC_MEMOPS, at));
}
