/* _every_line.h — what the parts of every_line share: the addresses of the entries in preload/cuda/cuda_table.h, the
 * sums of the memory that the cases hold, and the form of a case. Each line of the table is an entry, and has a case in
 * one of the parts. If a case is missing, the program does not link. */
#ifndef CUDA_EVERY_LINE_H
#define CUDA_EVERY_LINE_H

#include "expect.h"

#include <stdbool.h>
#include <stdint.h>

#include "preload/cuda/cuda_abi.h"

/* Every line, by its name and with its own arguments. */
extern struct entries {
#define ENTRY(side, name, base, since, per_thread, parameters, ...) int(*name) parameters;
#define RESOLVER ENTRY
#include "preload/cuda/cuda_table.h"
} f;

/* Other entries of the driver that the cases need. On every route, they are found by dlsym. */
extern struct others {
    int (*cuInit)(unsigned);
    int (*cuCtxSetCurrent)(cuda_handle);
    int (*cuStreamCreate)(cuda_handle *, unsigned);
    int (*cuGraphCreate)(cuda_handle *, unsigned);
    int (*cuMulticastAddDevice)(cuda_memory, int);
    int (*cuMemPoolExportToShareableHandle)(void *, cuda_handle, int, unsigned long long);
    int (*cuMemPoolImportFromShareableHandle)(cuda_handle *, void *, int, unsigned long long);
    int (*cuCtxGetCurrent)(cuda_handle *);
    int (*cuEventCreate)(cuda_handle *, unsigned);
    int (*cuEventRecord)(cuda_handle, cuda_handle);
    int (*cuEventDestroy_v2)(cuda_handle);
    int (*cudaSetDevice)(int);
    uint64_t (*sim_count)(const char *); /* simcuda.h */
    void (*sim_count_reset)(void);
} h;

enum { THREADS = 4, NON_BLOCKING = 1, RELAXED = 2, AS_FILE = 1, ON_DEVICE = 1, PINNED_TYPE = 1, DEVICES = 16 };
#define MIB ((size_t)1 << 20)
#define OK(call) MUST((call) == 0)

/* --- the memory that a worker holds --- */

enum kind { DEVICE, POOL, MANAGED, ARRAY, VMM, GRAPH, PINNED, REGISTERED, IMPORTED, RESERVED, KINDS };
extern uint64_t live_bytes[KINDS], live_blocks[KINDS], made_bytes[KINDS], made_blocks[KINDS];

struct worker {
    int number;
    cuda_handle stream, pool, shared_pool, imported_pool;
    uint64_t sizes, granules; /* requested so far */
    uint64_t handles;
};

static inline void add(uint64_t *to, uint64_t n) { __atomic_fetch_add(to, n, __ATOMIC_RELAXED); }

static inline void made(enum kind kind, uint64_t bytes) {
    add(&made_bytes[kind], bytes);
    add(&made_blocks[kind], 1);
}

static inline void kept(enum kind kind, uint64_t bytes) {
    made(kind, bytes);
    add(&live_bytes[kind], bytes);
    add(&live_blocks[kind], 1);
}

/* A size that is requested only once: a multiple of a page plus a small number. */
static inline size_t odd(struct worker *w) { return 8192 + w->sizes++ * 64 + (size_t)w->number * 8; }

/* --- shared by several cases --- */

static inline struct cuda_properties on_device(int handle_types) {
    return (struct cuda_properties){PINNED_TYPE, handle_types, {ON_DEVICE, 0}};
}

struct room { /* CUmemAllocationProp and CUmemPoolProps are larger */
    struct cuda_properties properties;
    char more[128];
};

static inline cuda_handle new_graph(void) {
    cuda_handle graph;
    OK(h.cuGraphCreate(&graph, 0));
    return graph;
}

static inline cuda_handle new_stream(void) {
    cuda_handle stream;
    OK(h.cuStreamCreate(&stream, NON_BLOCKING));
    return stream;
}

static inline cuda_handle new_pool(int handle_types) {
    struct room room = {on_device(handle_types), {0}};
    cuda_handle pool;
    OK(f.cuMemPoolCreate(&pool, &room.properties));
    return pool;
}

/* Requests on a captured stream belong to a node until its graph ends. */
static inline void ask_captured(cuda_handle stream, bool own, size_t bytes) {
    cuda_address at;
    OK(own ? f.cuMemAllocAsync_ptsz(&at, bytes, stream) : f.cuMemAllocAsync(&at, bytes, stream));
}

static inline void end_capture(cuda_handle stream, bool own, cuda_handle *graph) {
    OK(own ? f.cuStreamEndCapture_ptsz(stream, graph) : f.cuStreamEndCapture(stream, graph));
}

static inline void keep_captured(struct worker *w, cuda_handle stream, bool own) {
    size_t bytes = odd(w);
    cuda_handle graph;
    ask_captured(stream, own, bytes);
    end_capture(stream, own, &graph);
    kept(GRAPH, bytes);
}

/* Memory of another process (see `export`). Each handle is for one case. */
enum { HANDLES = THREADS * 8, EXPORTED = 4096 };
extern struct cuda_ipc_memory of_another[HANDLES];

static inline struct cuda_ipc_memory next_handle(struct worker *w) {
    MUST(w->handles < HANDLES / THREADS);
    return of_another[(size_t)w->number * (HANDLES / THREADS) + w->handles++];
}

/* A block in the report that is marked as exported. */
static inline void is_exported(size_t bytes) { say("expect cuda.blocks[size_bytes=%zu].exported == true", bytes); }

static inline void *own_memory(size_t bytes) { return aligned_alloc(4096, (bytes + 4095) / 4096 * 4096); }

static inline void keep_in(cuda_handle pool, struct worker *w) {
    size_t bytes = odd(w);
    cuda_address at;
    OK(f.cuMemAllocFromPoolAsync(&at, bytes, pool, w->stream));
    kept(POOL, bytes);
    say("expect cuda.blocks[size_bytes=%zu].pool == %zu", bytes, (size_t)pool);
}

/* From a pool that was made to be shared. */
static inline cuda_address in_shared_pool(struct worker *w, size_t *bytes) {
    cuda_address at;
    *bytes = odd(w);
    OK(f.cuMemAllocFromPoolAsync(&at, *bytes, w->shared_pool, w->stream));
    kept(POOL, *bytes);
    return at;
}

static inline struct cuda_alloc_node asking(size_t bytes) {
    struct cuda_alloc_node node = {.bytes = bytes};
    node.pool.properties = on_device(0);
    return node;
}

/* A capture becomes a graph. When the graph is destroyed, the requests of the capture end, too. */
static inline void end_graph(struct worker *w, cuda_handle stream, bool own, int (*ends)(cuda_handle, cuda_handle *)) {
    size_t bytes = odd(w);
    cuda_handle graph;
    OK(own ? f.cuStreamBeginCapture_v2_ptsz(stream, RELAXED) : f.cuStreamBeginCapture_v2(stream, RELAXED));
    ask_captured(stream, own, bytes);
    OK(ends(stream, &graph));
    OK(f.cuGraphDestroy(graph));
    made(GRAPH, bytes);
}

/* A capture ends with its stream (see `no_capture_is_left`), and so do its nodes. Memory of a pool stays. */
static inline void end_stream(struct worker *w, int (*ends)(cuda_handle)) {
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

/* --- cases --- */

#define ENTRY(side, name, ...) void case_##name(struct worker *w);
#define RESOLVER ENTRY
#include "preload/cuda/cuda_table.h"

#define CASE(name) void case_##name(struct worker *w)
#define UNUSED (void)w

#endif
