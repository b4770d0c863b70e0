/* Calls every line of preload/cuda_table.h, found by the route that the first argument names, by four threads with
 * streams of their own; then, one after the other, what ends contexts and devices. A line without a case here does not
 * link. It prints "called NAME" for each line that the route has, and what a report must have of each kind of memory,
 * live and allocated, to the byte; every size is asked for once. Over the simulated driver, a test double.
 *
 * GENERATION is that of the runtime, 12 or 13. Compiled with LINKED the entries are called as the loader binds them. */
#include "expect.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>

#include "../../preload/cuda_abi.h"

#ifdef LINKED
#define ENTRY(side, name, base, since, per_thread, parameters, ...) int name parameters;
#define RESOLVER ENTRY
#include "cuda_table.h"
#endif

/* Every line, by its name and with its own arguments. */
static struct {
#define ENTRY(side, name, base, since, per_thread, parameters, ...) int(*name) parameters;
#define RESOLVER ENTRY
#include "cuda_table.h"
} f;

/* What else of the driver's the cases need; by dlsym, whatever the route is. */
static struct {
    int (*cuInit)(unsigned);
    int (*cuCtxSetCurrent)(cuda_handle);
    int (*cuStreamCreate)(cuda_handle *, unsigned);
    int (*cuGraphCreate)(cuda_handle *, unsigned);
    int (*cuMulticastAddDevice)(cuda_memory, int);
    int (*cuMemPoolExportToShareableHandle)(void *, cuda_handle, int, unsigned long long);
    int (*cuMemPoolImportFromShareableHandle)(cuda_handle *, void *, int, unsigned long long);
    int (*cuCtxGetCurrent)(cuda_handle *);
    int (*cudaSetDevice)(int);
    uint64_t (*sim_count)(const char *); /* simcuda.h */
    void (*sim_count_reset)(void);
} h;

enum { RUNTIME, DRIVER };
enum { THREADS = 4, NON_BLOCKING = 1, RELAXED = 2, AS_FILE = 1, ON_DEVICE = 1, PINNED_TYPE = 1, DEVICES = 16 };
#define MIB ((size_t)1 << 20)
#define OK(call) MUST((call) == 0)

/* --- what is held --- */

enum kind { DEVICE, POOL, MANAGED, ARRAY, VMM, GRAPH, PINNED, REGISTERED, IMPORTED, RESERVED, KINDS };
static const char *const kind_names[KINDS] = {"device", "pool",   "managed",    "array",    "vmm",
                                              "graph",  "pinned", "registered", "imported", "reserved"};
static uint64_t live_bytes[KINDS], live_blocks[KINDS], made_bytes[KINDS], made_blocks[KINDS];

struct worker {
    int number;
    cuda_handle stream, pool, shared_pool, imported_pool;
    uint64_t sizes, granules; /* asked for so far */
    uint64_t handles;
};

static void add(uint64_t *to, uint64_t n) { __atomic_fetch_add(to, n, __ATOMIC_RELAXED); }

static void made(enum kind kind, uint64_t bytes) {
    add(&made_bytes[kind], bytes);
    add(&made_blocks[kind], 1);
}

static void kept(enum kind kind, uint64_t bytes) {
    made(kind, bytes);
    add(&live_bytes[kind], bytes);
    add(&live_blocks[kind], 1);
}

static void ended(enum kind kind, uint64_t bytes) {
    add(&live_bytes[kind], -bytes);
    add(&live_blocks[kind], (uint64_t)-1);
}

/* A size that nobody else asks for; a page's multiple plus something. */
static size_t odd(struct worker *w) { return 8192 + w->sizes++ * 64 + (size_t)w->number * 8; }
static size_t granules(struct worker *w) { return (w->granules++ * (THREADS + 1) + (size_t)w->number + 1) * 2 * MIB; }

/* --- what several cases do --- */

static struct cuda_properties on_device(int handle_types) {
    return (struct cuda_properties){PINNED_TYPE, handle_types, {ON_DEVICE, 0}};
}

struct room { /* CUmemAllocationProp and CUmemPoolProps are larger */
    struct cuda_properties properties;
    char more[128];
};

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

static cuda_handle new_graph(void) {
    cuda_handle graph;
    OK(h.cuGraphCreate(&graph, 0));
    return graph;
}

static cuda_handle new_stream(void) {
    cuda_handle stream;
    OK(h.cuStreamCreate(&stream, NON_BLOCKING));
    return stream;
}

static cuda_handle new_pool(int handle_types) {
    struct room room = {on_device(handle_types), {0}};
    cuda_handle pool;
    OK(f.cuMemPoolCreate(&pool, &room.properties));
    return pool;
}

/* What a captured stream is asked for is a node's, until its graph ends. */
static void ask_captured(cuda_handle stream, bool own, size_t bytes) {
    cuda_address at;
    OK(own ? f.cuMemAllocAsync_ptsz(&at, bytes, stream) : f.cuMemAllocAsync(&at, bytes, stream));
}

static void end_capture(cuda_handle stream, bool own, cuda_handle *graph) {
    OK(own ? f.cuStreamEndCapture_ptsz(stream, graph) : f.cuStreamEndCapture(stream, graph));
}

static void keep_captured(struct worker *w, cuda_handle stream, bool own) {
    size_t bytes = odd(w);
    cuda_handle graph;
    ask_captured(stream, own, bytes);
    end_capture(stream, own, &graph);
    kept(GRAPH, bytes);
}

/* Memory of another process (see `export`): each handle is for one case. */
enum { HANDLES = THREADS * 8, EXPORTED = 4096 };
static struct cuda_ipc_memory of_another[HANDLES];

static struct cuda_ipc_memory next_handle(struct worker *w) {
    MUST(w->handles < HANDLES / THREADS);
    return of_another[(size_t)w->number * (HANDLES / THREADS) + w->handles++];
}

/* A block in the report that is marked. */
static void is_exported(size_t bytes) { say("expect cuda.blocks[size_bytes=%zu].exported == true", bytes); }
static void is_bound(size_t bytes) { say("expect cuda.blocks[size_bytes=%zu].bound == true", bytes); }

#define CASE(name) static void case_##name(struct worker *w)
#define UNUSED (void)w

/* --- the runtime: linear memory --- */

CASE(cudaMalloc) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMalloc(&at, bytes));
    kept(DEVICE, bytes);
}
CASE(cudaMallocPitch) {
    size_t pitch, width = odd(w);
    void *at;
    OK(f.cudaMallocPitch(&at, &pitch, width, 3));
    kept(DEVICE, pitch * 3);
}
CASE(cudaMalloc3D) {
    struct cuda_pitched at;
    OK(f.cudaMalloc3D(&at, (struct cuda_extent){odd(w), 2, 3}));
    kept(DEVICE, at.pitch * 6);
}
CASE(cudaMallocManaged) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMallocManaged(&at, bytes, 1));
    kept(MANAGED, bytes);
}
CASE(cudaFree) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMalloc(&at, bytes));
    OK(f.cudaFree(at));
    made(DEVICE, bytes);
    OK(f.cudaMallocManaged(&at, bytes, 1));
    OK(f.cudaFree(at));
    made(MANAGED, bytes);
    OK(f.cudaFree(NULL));
}

/* --- the runtime: memory in the order of streams --- */

CASE(cudaMallocAsync) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMallocAsync(&at, bytes, w->stream));
    kept(POOL, bytes);
}
CASE(cudaMallocAsync_ptsz) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMallocAsync_ptsz(&at, bytes, NULL));
    kept(POOL, bytes);
    say("expect cuda.blocks[size_bytes=%zu].stream == 2", bytes);
}
CASE(cudaMallocFromPoolAsync) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMallocFromPoolAsync(&at, bytes, w->pool, w->stream));
    kept(POOL, bytes);
    say("expect cuda.blocks[size_bytes=%zu].pool == %zu", bytes, (size_t)w->pool);
}
CASE(cudaMallocFromPoolAsync_ptsz) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMallocFromPoolAsync_ptsz(&at, bytes, w->pool, NULL));
    kept(POOL, bytes);
    say("expect cuda.blocks[size_bytes=%zu].stream == 2", bytes);
    say("expect cuda.blocks[size_bytes=%zu].pool == %zu", bytes, (size_t)w->pool);
}
CASE(cudaFreeAsync) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMallocAsync(&at, bytes, w->stream));
    OK(f.cudaFreeAsync(at, w->stream));
    made(POOL, bytes);
}
CASE(cudaFreeAsync_ptsz) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMallocAsync_ptsz(&at, bytes, NULL));
    OK(f.cudaFreeAsync_ptsz(at, NULL));
    made(POOL, bytes);
}

/* --- the runtime: arrays --- */

static const struct cuda_channels two_floats = {{32, 32, 0, 0}, 2};

CASE(cudaMallocArray) {
    size_t width = odd(w) / 8;
    cuda_handle array;
    OK(f.cudaMallocArray(&array, &two_floats, width, 3, 0));
    kept(ARRAY, width * 3 * 8);
}
CASE(cudaMalloc3DArray) {
    size_t width = odd(w) / 8;
    cuda_handle array;
    OK(f.cudaMalloc3DArray(&array, &two_floats, (struct cuda_extent){width, 3, 2}, 0));
    kept(ARRAY, width * 6 * 8);
}
CASE(cudaFreeArray) {
    size_t width = odd(w) / 8;
    cuda_handle array;
    OK(f.cudaMallocArray(&array, &two_floats, width, 0, 0));
    OK(f.cudaFreeArray(array));
    made(ARRAY, width * 8);
}
CASE(cudaMallocMipmappedArray) {
    size_t width = odd(w) / 8;
    cuda_handle array;
    OK(f.cudaMallocMipmappedArray(&array, &two_floats, (struct cuda_extent){width, 4, 0}, 2, 0));
    kept(ARRAY, (width * 4 + width / 2 * 2) * 8);
}
CASE(cudaFreeMipmappedArray) {
    size_t width = odd(w) / 8;
    cuda_handle array;
    OK(f.cudaMallocMipmappedArray(&array, &two_floats, (struct cuda_extent){width, 4, 0}, 1, 0));
    OK(f.cudaFreeMipmappedArray(array));
    made(ARRAY, width * 32);
}

/* --- the runtime: host memory --- */

CASE(cudaMallocHost) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMallocHost(&at, bytes));
    memset(at, 1, bytes);
    kept(PINNED, bytes);
}
CASE(cudaHostAlloc) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaHostAlloc(&at, bytes, 0));
    kept(PINNED, bytes);
}
CASE(cudaFreeHost) {
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMallocHost(&at, bytes));
    OK(f.cudaFreeHost(at));
    made(PINNED, bytes);
}
static void *own_memory(size_t bytes) { return aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); }

CASE(cudaHostRegister) {
    size_t bytes = odd(w);
    OK(f.cudaHostRegister(own_memory(bytes), bytes, 0));
    kept(REGISTERED, bytes);
}
CASE(cudaHostUnregister) {
    size_t bytes = odd(w);
    void *at = own_memory(bytes);
    OK(f.cudaHostRegister(at, bytes, 0));
    OK(f.cudaHostUnregister(at));
    made(REGISTERED, bytes);
}

/* --- the runtime: pools, other processes, graphs --- */

static void keep_in(cuda_handle pool, struct worker *w) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAllocFromPoolAsync(&at, bytes, pool, w->stream));
    kept(POOL, bytes);
    say("expect cuda.blocks[size_bytes=%zu].pool == %zu", bytes, (size_t)pool);
}

CASE(cudaMemPoolCreate) {
    struct room room = {on_device(0), {0}};
    cuda_handle pool;
    OK(f.cudaMemPoolCreate(&pool, &room.properties));
    keep_in(pool, w);
}
CASE(cudaMemPoolDestroy) {
    cuda_handle pool = new_pool(0);
    keep_in(pool, w); /* it stays until it is freed */
    OK(f.cudaMemPoolDestroy(pool));
}

/* Of a pool that was made to be shared. */
static cuda_address in_shared_pool(struct worker *w, size_t *bytes) {
    cuda_address at;
    *bytes = odd(w);
    OK(f.cuMemAllocFromPoolAsync(&at, *bytes, w->shared_pool, w->stream));
    kept(POOL, *bytes);
    return at;
}

CASE(cudaMemPoolImportPointer) {
    char data[64];
    size_t bytes;
    void *at;
    OK(f.cuMemPoolExportPointer(data, in_shared_pool(w, &bytes)));
    OK(f.cudaMemPoolImportPointer(&at, w->imported_pool, data));
    kept(IMPORTED, 0);
}
CASE(cudaMemPoolExportPointer) {
    char data[64];
    size_t bytes;
    OK(f.cudaMemPoolExportPointer(data, (void *)in_shared_pool(w, &bytes)));
    is_exported(bytes);
}
CASE(cudaIpcGetMemHandle) {
    struct cuda_ipc_memory handle;
    size_t bytes = odd(w);
    void *at;
    OK(f.cudaMalloc(&at, bytes));
    kept(DEVICE, bytes);
    OK(f.cudaIpcGetMemHandle(&handle, at));
    is_exported(bytes);
}
CASE(cudaIpcOpenMemHandle) {
    void *at;
    OK(f.cudaIpcOpenMemHandle(&at, next_handle(w), 1));
    kept(IMPORTED, 0);
}
CASE(cudaIpcCloseMemHandle) {
    void *at;
    OK(f.cudaIpcOpenMemHandle(&at, next_handle(w), 1));
    OK(f.cudaIpcCloseMemHandle(at));
    made(IMPORTED, 0);
}

static struct cuda_alloc_node asking(size_t bytes) {
    struct cuda_alloc_node node = {.bytes = bytes};
    node.pool.properties = on_device(0);
    return node;
}

CASE(cudaGraphAddMemAllocNode) {
    struct cuda_alloc_node params = asking(odd(w));
    cuda_handle node;
    OK(f.cudaGraphAddMemAllocNode(&node, new_graph(), NULL, 0, &params));
    kept(GRAPH, params.bytes);
}
CASE(cudaGraphDestroy) {
    struct cuda_alloc_node params = asking(odd(w));
    cuda_handle node, graph = new_graph();
    OK(f.cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    OK(f.cudaGraphDestroy(graph));
    made(GRAPH, params.bytes);
}

/* --- the runtime: captures, figures --- */

CASE(cudaStreamBeginCapture) {
    cuda_handle stream = new_stream();
    OK(f.cudaStreamBeginCapture(stream, RELAXED));
    keep_captured(w, stream, false);
}
CASE(cudaStreamBeginCapture_ptsz) {
    OK(f.cudaStreamBeginCapture_ptsz(NULL, RELAXED));
    keep_captured(w, NULL, true);
}
CASE(cudaStreamBeginCaptureToGraph) {
    cuda_handle stream = new_stream();
    OK(f.cudaStreamBeginCaptureToGraph(stream, new_graph(), NULL, NULL, 0, RELAXED));
    keep_captured(w, stream, false);
}
CASE(cudaStreamBeginCaptureToGraph_ptsz) {
    OK(f.cudaStreamBeginCaptureToGraph_ptsz(NULL, new_graph(), NULL, NULL, 0, RELAXED));
    keep_captured(w, NULL, true);
}

/* The graph that a capture has become takes with it what was asked for. */
static void end_graph(struct worker *w, cuda_handle stream, bool own, int (*ends)(cuda_handle, cuda_handle *)) {
    size_t bytes = odd(w);
    cuda_handle graph;
    OK(own ? f.cuStreamBeginCapture_v2_ptsz(stream, RELAXED) : f.cuStreamBeginCapture_v2(stream, RELAXED));
    ask_captured(stream, own, bytes);
    OK(ends(stream, &graph));
    OK(f.cuGraphDestroy(graph));
    made(GRAPH, bytes);
}

CASE(cudaStreamEndCapture) { end_graph(w, new_stream(), false, f.cudaStreamEndCapture); }
CASE(cudaStreamEndCapture_ptsz) { end_graph(w, NULL, true, f.cudaStreamEndCapture_ptsz); }

/* A capture is over with its stream (see `no_capture_is_left`), and its nodes; what is in a pool stays. */
static void end_stream(struct worker *w, int (*ends)(cuda_handle)) {
    size_t bytes = odd(w), captured = odd(w);
    cuda_handle stream = new_stream();
    cuda_address at;
    OK(f.cuMemAllocAsync(&at, bytes, stream));
    kept(POOL, bytes);
    OK(f.cuStreamBeginCapture_v2(stream, RELAXED));
    ask_captured(stream, false, captured);
    made(GRAPH, captured);
    OK(ends(stream));
    MUST(ends(stream) != 0);
}

CASE(cudaStreamDestroy) { end_stream(w, f.cudaStreamDestroy); }
CASE(cudaMemGetInfo) {
    size_t available = 1, total = 0;
    UNUSED;
    OK(f.cudaMemGetInfo(&available, &total));
    MUST(available < total);
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
    room.more[9] = 1; /* allocFlags.gpuDirectRDMACapable, as no other memory can be had so */
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
CASE(cuStreamEndCapture) { end_graph(w, new_stream(), false, f.cuStreamEndCapture); }
CASE(cuStreamEndCapture_ptsz) { end_graph(w, NULL, true, f.cuStreamEndCapture_ptsz); }
CASE(cuStreamDestroy) { end_stream(w, f.cuStreamDestroy); }
CASE(cuStreamDestroy_v2) { end_stream(w, f.cuStreamDestroy_v2); }
CASE(cuMemGetInfo_v2) {
    size_t available = 1, total = 0;
    UNUSED;
    OK(f.cuMemGetInfo_v2(&available, &total));
    MUST(available < total);
}

/* --- resolvers: what they answer with is called --- */

typedef int allocate(cuda_address *, size_t);

static void keep_by(allocate *call, struct worker *w) {
    size_t bytes = odd(w);
    cuda_address at;
    MUST(call);
    OK(call(&at, bytes));
    kept(DEVICE, bytes);
}

CASE(cuGetProcAddress) {
    allocate *found = NULL;
    OK(f.cuGetProcAddress("cuMemAlloc", (void **)&found, 3020, 0));
    keep_by(found, w);
}
CASE(cuGetProcAddress_v2) {
    allocate *found = NULL;
    int status = -1;
    OK(f.cuGetProcAddress_v2("cuMemAlloc", (void **)&found, 12000, 0, &status));
    MUST(status == 0);
    keep_by(found, w);
}
CASE(cudaGetDriverEntryPoint) {
    allocate *found = NULL;
    int status = -1;
    OK(f.cudaGetDriverEntryPoint("cuMemAlloc", (void **)&found, 0, &status));
    keep_by(found, w);
}
CASE(cudaGetDriverEntryPointByVersion) {
    allocate *found = NULL;
    int status = -1;
    OK(f.cudaGetDriverEntryPointByVersion("cuMemAlloc", (void **)&found, 3020, 0, &status));
    keep_by(found, w);
}

/* The thread's own stream is the default one of what they find. */
typedef int allocate_async(cuda_address *, size_t, cuda_handle);

static void keep_in_own_stream_by(allocate_async *call, struct worker *w) {
    size_t bytes = odd(w);
    cuda_address at;
    MUST(call);
    OK(call(&at, bytes, NULL));
    kept(POOL, bytes);
    say("expect cuda.blocks[size_bytes=%zu].stream == 2", bytes);
}

CASE(cudaGetDriverEntryPoint_ptsz) {
    allocate_async *found = NULL;
    int status = -1;
    OK(f.cudaGetDriverEntryPoint_ptsz("cuMemAllocAsync", (void **)&found, 0, &status));
    keep_in_own_stream_by(found, w);
}
CASE(cudaGetDriverEntryPointByVersion_ptsz) {
    allocate_async *found = NULL;
    int status = -1;
    OK(f.cudaGetDriverEntryPointByVersion_ptsz("cuMemAllocAsync", (void **)&found, 11020, 0, &status));
    keep_in_own_stream_by(found, w);
}

/* --- by one thread: captures in global mode, and what ends contexts and devices, each on a device of its own --- */

CASE(cuStreamBeginCapture) {
    cuda_handle stream = new_stream();
    OK(f.cuStreamBeginCapture(stream));
    keep_captured(w, stream, false);
}
CASE(cuStreamBeginCapture_ptsz) {
    OK(f.cuStreamBeginCapture_ptsz(NULL));
    keep_captured(w, NULL, true);
}

static int next_device = 1;

/* The primary context of a device that nobody has used becomes the thread's. */
static cuda_handle take_device(int *device) {
    cuda_handle context;
    MUST(next_device < DEVICES);
    *device = next_device++;
    OK(f.cuDevicePrimaryCtxRetain(&context, *device));
    OK(h.cuCtxSetCurrent(context));
    return context;
}

static void back_to_first(void) { OK(h.cudaSetDevice(0)); }

/* Memory of the context goes with it, the pool's does not. */
static void fill_context(struct worker *w) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAlloc_v2(&at, bytes));
    made(DEVICE, bytes);
    OK(f.cuMemAllocAsync(&at, bytes, NULL));
    kept(POOL, bytes);
}

static void reset_runtime(struct worker *w, int (*reset)(void)) {
    OK(h.cudaSetDevice(next_device++));
    fill_context(w);
    OK(reset());
    back_to_first();
}

CASE(cudaDeviceReset) { reset_runtime(w, f.cudaDeviceReset); }
CASE(cudaThreadExit) { reset_runtime(w, f.cudaThreadExit); }

static void end_primary(struct worker *w, int (*ends)(int)) {
    int device;
    take_device(&device);
    fill_context(w);
    OK(ends(device));
    back_to_first();
}

CASE(cuDevicePrimaryCtxReset) { end_primary(w, f.cuDevicePrimaryCtxReset); }
CASE(cuDevicePrimaryCtxReset_v2) { end_primary(w, f.cuDevicePrimaryCtxReset_v2); }
CASE(cuDevicePrimaryCtxRelease) { end_primary(w, f.cuDevicePrimaryCtxRelease); }
CASE(cuDevicePrimaryCtxRelease_v2) { end_primary(w, f.cuDevicePrimaryCtxRelease_v2); }
CASE(cuDevicePrimaryCtxRetain) {
    int device;
    size_t bytes = odd(w);
    cuda_handle context = take_device(&device);
    cuda_address at;
    OK(f.cuMemAlloc_v2(&at, bytes));
    kept(DEVICE, bytes);
    say("expect cuda.blocks[size_bytes=%zu].device == %d", bytes, device);
    say("expect cuda.blocks[size_bytes=%zu].context == %zu", bytes, (size_t)context);
    back_to_first();
}

static void end_created(struct worker *w, cuda_handle context, int (*ends)(cuda_handle)) {
    fill_context(w);
    OK(ends(context));
    back_to_first();
}

CASE(cuCtxCreate_v2) {
    cuda_handle context;
    OK(f.cuCtxCreate_v2(&context, 0, 0));
    end_created(w, context, f.cuCtxDestroy_v2);
}
CASE(cuCtxCreate_v3) {
    cuda_handle context;
    OK(f.cuCtxCreate_v3(&context, NULL, 0, 0, 0));
    end_created(w, context, f.cuCtxDestroy_v2);
}
CASE(cuCtxCreate_v4) {
    cuda_handle context;
    OK(f.cuCtxCreate_v4(&context, NULL, 0, 0));
    end_created(w, context, f.cuCtxDestroy_v2);
}
CASE(cuCtxDestroy) {
    cuda_handle context;
    OK(f.cuCtxCreate_v2(&context, 0, 0));
    end_created(w, context, f.cuCtxDestroy);
}
CASE(cuCtxDestroy_v2) {
    cuda_handle context;
    OK(f.cuCtxCreate_v2(&context, 0, 0));
    end_created(w, context, f.cuCtxDestroy_v2);
}

CASE(cuCtxEnablePeerAccess) {
    int device;
    cuda_handle context = take_device(&device);
    UNUSED;
    back_to_first();
    OK(f.cuCtxEnablePeerAccess(context, 0));
}
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

/* --- the lines --- */

static struct line {
    const char *name, *base;
    int side, since, per_thread;
    void *at; /* in `f` */
    void (*run)(struct worker *);
    bool by_route;
} lines[] = {
#define ENTRY(side, name, base, since, per_thread, ...) {#name, base, side, since, per_thread, &f.name, case_##name, 0},
#define RESOLVER ENTRY
#include "cuda_table.h"
};
enum { LINES = sizeof lines / sizeof *lines };

/* Those that only one thread does, in this order. */
static const char *const alone[] = {"cuStreamBeginCapture",
                                    "cuStreamBeginCapture_ptsz",
                                    "cuCtxCreate_v2",
                                    "cuCtxCreate_v3",
                                    "cuCtxCreate_v4",
                                    "cuCtxDestroy",
                                    "cuCtxDestroy_v2",
                                    "cuDevicePrimaryCtxRetain",
                                    "cuDevicePrimaryCtxReset",
                                    "cuDevicePrimaryCtxReset_v2",
                                    "cuDevicePrimaryCtxRelease",
                                    "cuDevicePrimaryCtxRelease_v2",
                                    "cudaDeviceReset",
                                    "cudaThreadExit",             "cuCtxEnablePeerAccess"};
enum { ALONE = sizeof alone / sizeof *alone };

static bool is_alone(const char *name) {
    for (int i = 0; i < ALONE; i++)
        if (!strcmp(alone[i], name)) return true;
    return false;
}

/* --- routes: each says where a line is found, or NULL --- */

static void *driver, *runtime;
#define TEXT_OF(n) #n
#define TEXT(n) TEXT_OF(n)
#define RUNTIME_LIBRARY "libcudart.so." TEXT(GENERATION)

static void *library_of(const struct line *line) { return line->side == DRIVER ? driver : runtime; }
static void *by_dlsym(const struct line *line) { return dlsym(library_of(line), line->name); }
static void *by_default(const struct line *line) { return dlsym(RTLD_DEFAULT, line->name); }
/* The driver's symbols have no versions. */
static void *by_dlvsym(const struct line *line) { return dlvsym(library_of(line), line->name, RUNTIME_LIBRARY); }

typedef int get_v1(const char *, void **, int, uint64_t);
typedef int get_v2(const char *, void **, int, uint64_t, int *);
typedef int get_runtime(const char *, void **, unsigned long long, int *);
typedef int get_version(const char *, void **, unsigned, unsigned long long, int *);
enum { OWN_STREAM = 2 };

static void *by_getproc_v1(const struct line *line) {
    get_v1 *get = (get_v1 *)dlsym(driver, "cuGetProcAddress");
    void *found = NULL;
    if (!*line->base || get(line->base, &found, line->since, line->per_thread ? OWN_STREAM : 0)) return NULL;
    return found;
}
static void *by_getproc_v2(const struct line *line) {
    get_v2 *get = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2");
    void *found = NULL;
    int status;
    if (!*line->base || get(line->base, &found, line->since, line->per_thread ? OWN_STREAM : 0, &status)) return NULL;
    return found;
}
/* The resolvers that the resolver gives. */
static void *by_getproc_again(const struct line *line) {
    get_v2 *get = (get_v2 *)dlsym(driver, "cuGetProcAddress_v2"), *young;
    get_v1 *old;
    void *found = NULL;
    int status, flags = line->per_thread ? OWN_STREAM : 0;
    OK(get("cuGetProcAddress", (void **)&old, 11030, 0, &status));
    OK(get("cuGetProcAddress", (void **)&young, 12000, 0, &status));
    if (!*line->base) return NULL;
    if (line->since % 20 ? old(line->base, &found, line->since, flags)
                         : young(line->base, &found, line->since, flags, &status))
        return NULL;
    return found;
}

/* The runtime's own version is asked for: neither older lines of the same name are to be had, nor younger ones. */
static bool is_of_runtime(const struct line *line) {
    enum { VERSION = GENERATION * 1000 };
    for (int i = 0; i < LINES; i++)
        if (!strcmp(lines[i].base, line->base) && lines[i].since > line->since && lines[i].since <= VERSION &&
            lines[i].per_thread <= line->per_thread)
            return false;
    return *line->base && line->since <= VERSION;
}
static void *by_entry_point(const struct line *line) {
    get_runtime *get = (get_runtime *)dlsym(runtime, "cudaGetDriverEntryPoint");
    void *found = NULL;
    int status;
    if (!is_of_runtime(line) || get(line->base, &found, line->per_thread ? OWN_STREAM : 0, &status)) return NULL;
    return found;
}
static void *by_entry_point_ptsz(const struct line *line) {
    get_runtime *get = (get_runtime *)dlsym(runtime, "cudaGetDriverEntryPoint_ptsz");
    void *found = NULL;
    int status;
    if (!is_of_runtime(line) || get(line->base, &found, line->per_thread ? 0 : 1, &status)) return NULL;
    return found;
}
static void *by_entry_point_version(const struct line *line) {
    get_version *get = (get_version *)dlsym(runtime, "cudaGetDriverEntryPointByVersion");
    void *found = NULL;
    int status;
    if (!*line->base || get(line->base, &found, (unsigned)line->since, line->per_thread ? OWN_STREAM : 0, &status))
        return NULL;
    return found;
}
static void *by_entry_point_version_ptsz(const struct line *line) {
    get_version *get = (get_version *)dlsym(runtime, "cudaGetDriverEntryPointByVersion_ptsz");
    void *found = NULL;
    int status;
    if (!*line->base || get(line->base, &found, (unsigned)line->since, line->per_thread ? 0 : 1, &status)) return NULL;
    return found;
}

#ifdef LINKED
static void *by_loader(const struct line *line) {
    static const struct {
        const char *name;
        void *at;
    } all[] = {
#define ENTRY(side, name, ...) {#name, (void *)name},
#define RESOLVER ENTRY
#include "cuda_table.h"
    };
    return all[line - lines].at;
}
#endif

static const struct {
    const char *name;
    void *(*find)(const struct line *);
} routes[] = {
#ifdef LINKED
    {"linked", by_loader},
#else
    {"dlsym", by_dlsym},
    {"default", by_default},
    {"dlvsym", by_dlvsym},
    {"getproc_v1", by_getproc_v1},
    {"getproc_v2", by_getproc_v2},
    {"getproc_again", by_getproc_again},
    {"entry_point", by_entry_point},
    {"entry_point_ptsz", by_entry_point_ptsz},
    {"entry_point_version", by_entry_point_version},
    {"entry_point_version_ptsz", by_entry_point_version_ptsz},
#endif
};

static void open_libraries(int how) {
    MUST(driver = dlopen("libcuda.so.1", RTLD_NOW | how));
    MUST(runtime = dlopen(RUNTIME_LIBRARY, RTLD_NOW | how));
#define FIND(library, name) MUST(*(void **)&h.name = dlsym(library, #name))
    FIND(driver, cuInit);
    FIND(driver, cuCtxSetCurrent);
    FIND(driver, cuStreamCreate);
    FIND(driver, cuGraphCreate);
    FIND(driver, cuMulticastAddDevice);
    FIND(driver, cuMemPoolExportToShareableHandle);
    FIND(driver, cuMemPoolImportFromShareableHandle);
    FIND(driver, cuCtxGetCurrent);
    FIND(driver, sim_count);
    FIND(driver, sim_count_reset);
    FIND(runtime, cudaSetDevice);
}

static bool tracked(void) {
    static int known; /* 1: no; 2: yes */
    if (!known) known = dlsym(RTLD_DEFAULT, "memstow_owner_open") ? 2 : 1;
    return known == 2;
}

/* With memstow, every line leads to it, whatever the route is. */
static void is_hooked(const struct line *line, void *found) {
    Dl_info in;
    if (!tracked()) return;
    if (dladdr(found, &in) && strstr(in.dli_fname, "libmemstow")) return;
    say("%s is %s's", line->name, in.dli_fname);
    exit(1);
}

/* What the route does not have, a case may need nevertheless. */
static void find_lines(const char *route) {
    void *(*find)(const struct line *) = NULL;
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (!strcmp(routes[i].name, route)) find = routes[i].find;
    MUST(find);
    for (int i = 0; i < LINES; i++) {
        void *found = find(&lines[i]);
        if ((lines[i].by_route = found != NULL)) is_hooked(&lines[i], found);
        if (!found) found = by_dlsym(&lines[i]);
        MUST(found);
        *(void **)lines[i].at = found;
    }
}

/* --- running --- */

/* In a process of its own, which memstow is not in: the handles of what it has go to standard output; it ends with its
 * standard input. */
static int export(void) {
    struct cuda_ipc_memory handle;
    cuda_handle context;
    cuda_address at;
    char end;
    open_libraries(RTLD_LOCAL);
    for (int i = 0; i < LINES; i++) *(void **)lines[i].at = by_dlsym(&lines[i]);
    OK(h.cuInit(0));
    OK(f.cuDevicePrimaryCtxRetain(&context, 0));
    OK(h.cuCtxSetCurrent(context));
    for (int i = 0; i < HANDLES; i++) {
        OK(f.cuMemAlloc_v2(&at, MIB));
        OK(f.cuIpcGetMemHandle(&handle, at));
        MUST(write(STDOUT_FILENO, &handle, sizeof handle) == sizeof handle);
    }
    return read(STDIN_FILENO, &end, 1) != 0;
}

static int end_of_exporter;

static void start_exporter(char *program) {
    int ask[2], answer[2];
    MUST(!pipe(ask) && !pipe(answer));
    pid_t child = fork();
    MUST(child >= 0);
    if (!child) {
        unsetenv("LD_PRELOAD");
        dup2(ask[0], STDIN_FILENO);
        dup2(answer[1], STDOUT_FILENO);
        close(ask[1]);
        execl("/proc/self/exe", program, "export", (char *)NULL);
        _exit(127);
    }
    close(ask[0]);
    close(answer[1]);
    for (size_t got = 0; got < sizeof of_another;) {
        ssize_t n = read(answer[0], (char *)of_another + got, sizeof of_another - got);
        MUST(n > 0);
        got += (size_t)n;
    }
    end_of_exporter = ask[1];
}

static cuda_handle first_context;

static void begin(struct worker *w) {
    int shared;
    OK(h.cuCtxSetCurrent(first_context));
    w->stream = new_stream();
    w->pool = new_pool(0);
    w->shared_pool = new_pool(AS_FILE);
    OK(h.cuMemPoolExportToShareableHandle(&shared, w->shared_pool, AS_FILE, 0));
    OK(h.cuMemPoolImportFromShareableHandle(&w->imported_pool, (void *)(intptr_t)shared, AS_FILE, 0));
    close(shared);
}

static void *work(void *number) {
    struct worker w = {.number = (int)(intptr_t)number};
    begin(&w);
    for (int i = 0; i < LINES; i++)
        if (lines[i].by_route && !is_alone(lines[i].name)) lines[i].run(&w);
    return NULL;
}

static void work_alone(void) {
    struct worker w = {.number = THREADS};
    begin(&w);
    for (int i = 0; i < ALONE; i++)
        for (int k = 0; k < LINES; k++)
            if (lines[k].by_route && !strcmp(lines[k].name, alone[i])) lines[k].run(&w);
}

/* While memstow knows of a capture it asks the driver for no figures, as it does after so much. */
static void no_capture_is_left(void) {
    cuda_address at;
    usleep(200000); /* it asks again after a while only */
    h.sim_count_reset();
    OK(f.cuMemAlloc_v2(&at, 100 * MIB));
    kept(DEVICE, 100 * MIB);
    if (tracked()) MUST(h.sim_count("cuMemGetInfo_v2") == 1);
}

int main(int count, char **arguments) {
    pthread_t threads[THREADS];
    if (count == 1) {
        for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) say("%s", routes[i].name);
        return 0;
    }
    if (!strcmp(arguments[1], "export")) return export();
    start_exporter(arguments[0]);
    open_libraries(strcmp(arguments[1], "default") ? RTLD_LOCAL : RTLD_GLOBAL);
    find_lines(arguments[1]);
    OK(h.cuInit(0));
    OK(f.cuDevicePrimaryCtxRetain(&first_context, 0));
    OK(h.cuCtxSetCurrent(first_context));
    for (intptr_t i = 0; i < THREADS; i++) MUST(!pthread_create(&threads[i], NULL, work, (void *)i));
    for (int i = 0; i < THREADS; i++) MUST(!pthread_join(threads[i], NULL));
    work_alone();
    no_capture_is_left();
    for (int i = 0; i < LINES; i++)
        if (lines[i].by_route) say("called %s", lines[i].name);
    for (int kind = 0; kind < KINDS; kind++)
        say("kind %s %zu %zu %zu %zu", kind_names[kind], (size_t)live_bytes[kind], (size_t)live_blocks[kind],
            (size_t)made_bytes[kind], (size_t)made_blocks[kind]);
    close(end_of_exporter);
    MUST(wait(NULL) > 0);
    return 0;
}
