/* _every_line_runtime.c — a case for each line of the runtime; see _every_line.c. */
#include "_every_line.h"

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

CASE(cudaMemPoolCreate) {
    struct room room = {on_device(0), {0}};
    cuda_handle pool;
    OK(f.cudaMemPoolCreate(&pool, &room.properties));
    keep_in(pool, w);
}
CASE(cudaMemPoolDestroy) {
    cuda_handle pool = new_pool(0);
    keep_in(pool, w); /* the block outlives the pool */
    OK(f.cudaMemPoolDestroy(pool));
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

CASE(cudaStreamEndCapture) { end_graph(w, new_stream(), false, f.cudaStreamEndCapture); }
CASE(cudaStreamEndCapture_ptsz) { end_graph(w, NULL, true, f.cudaStreamEndCapture_ptsz); }

CASE(cudaStreamDestroy) { end_stream(w, f.cudaStreamDestroy); }
CASE(cudaMemGetInfo) {
    size_t available = 1, total = 0;
    UNUSED;
    OK(f.cudaMemGetInfo(&available, &total));
    MUST(available < total);
}
