// The simulated CUDA driver, a test double: stream-ordered memory, captures, graphs and their memory.
#include <pthread.h>

#include "proof.h"

TestSuite(simcuda_pools, .init = proof_begin);
TestSuite(simcuda_capture, .init = proof_begin);

static CUmemoryPool default_pool(void) {
    CUmemoryPool pool;
    OK(cuDeviceGetDefaultMemPool(&pool, 0));
    return pool;
}

static uint64_t attribute(CUmemoryPool pool, int which) {
    uint64_t value;
    OK(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

static void keep(CUmemoryPool pool, uint64_t bytes) {
    OK(cuMemPoolSetAttribute(pool, CU_POOL_RELEASE_THRESHOLD, &bytes));
}

Test(simcuda_pools, statistics) {
    CUdeviceptr one, two;
    CUmemoryPool pool = default_pool();
    OK(cuMemAllocAsync(&one, 1000, NULL));
    OK(cuMemAllocAsync(&two, 3 * MIB, NULL));
    cr_assert_eq(attribute(pool, CU_POOL_USED), 1024 + 3 * MIB);
    cr_assert_eq(attribute(pool, CU_POOL_RESERVED), 32 * MIB);
    OK(cuMemFreeAsync(two, NULL));
    cr_assert_eq(attribute(pool, CU_POOL_USED), 1024);
    cr_assert_eq(attribute(pool, CU_POOL_USED_HIGH), 1024 + 3 * MIB);
    uint64_t zero = 0, one_more = 1;
    OK(cuMemPoolSetAttribute(pool, CU_POOL_USED_HIGH, &zero));
    cr_assert_eq(attribute(pool, CU_POOL_USED_HIGH), 1024);
    REFUSED(cuMemPoolSetAttribute(pool, CU_POOL_USED_HIGH, &one_more), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuMemFreeAsync(two, NULL), CUDA_ERROR_INVALID_VALUE);
}

Test(simcuda_pools, memory_goes_back_at_the_next_synchronisation) {
    CUdeviceptr at;
    uint64_t before = proof_usage(0).used;
    OK(cuMemAllocAsync(&at, 40 * MIB, NULL));
    OK(cuMemFreeAsync(at, NULL));
    cr_assert(proof_settled());
    cr_assert_eq(proof_usage(0).used, before + 40 * MIB, "not yet");
    OK(cuStreamSynchronize(NULL));
    cr_assert_eq(proof_usage(0).used, before);
}

Test(simcuda_pools, unless_the_threshold_keeps_it) {
    CUdeviceptr at;
    uint64_t before = proof_usage(0).used;
    keep(default_pool(), UINT64_MAX);
    OK(cuMemAllocAsync(&at, 40 * MIB, NULL));
    OK(cuMemFreeAsync(at, NULL));
    OK(cuStreamSynchronize(NULL));
    cr_assert_eq(proof_usage(0).used, before + 40 * MIB);
    OK(cuMemPoolTrimTo(default_pool(), 0));
    cr_assert_eq(proof_usage(0).used, before);
}

Test(simcuda_pools, kept_memory_is_given_up_before_an_allocation_fails) {
    CUdeviceptr at;
    keep(default_pool(), UINT64_MAX);
    OK(cuMemAllocAsync(&at, 60 * MIB, NULL));
    OK(cuMemFreeAsync(at, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuMemAlloc_v2(&at, 70 * MIB));
    REFUSED(cuMemAllocAsync(&at, 70 * MIB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
}

Test(simcuda_pools, reuse_on_the_same_stream_at_once) {
    CUdeviceptr one, two;
    CUstream stream, other;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocAsync(&one, 4 * MIB, stream));
    sim_hold(1);
    OK(cuMemFreeAsync(one, stream));
    OK(cuMemAllocAsync(&two, 4 * MIB, other));
    cr_assert_neq(two, one, "elsewhere only when the free has been executed");
    OK(cuMemAllocAsync(&two, 4 * MIB, stream));
    cr_assert_eq(two, one);
    sim_hold(-1);
    OK(cuCtxSynchronize());
}

/* Earlier work finds its data although the address has been given to later work. */
Test(simcuda_pools, reuse_keeps_the_order_of_the_stream) {
    CUdeviceptr one, two, copy;
    uint32_t back;
    OK(cuMemAlloc_v2(&copy, MIB));
    OK(cuMemAllocAsync(&one, 4 * MIB, NULL));
    sim_hold(1);
    OK(cuMemsetD32Async(one, 7, 1, NULL));
    OK(cuMemcpyDtoDAsync_v2(copy, one, 4, NULL));
    OK(cuMemFreeAsync(one, NULL));
    OK(cuMemAllocAsync(&two, 4 * MIB, NULL));
    OK(cuMemsetD32Async(two, 8, 1, NULL));
    sim_hold(-1);
    OK(cuMemcpyDtoH_v2(&back, copy, 4));
    cr_assert_eq(back, 7);
    OK(cuMemcpyDtoH_v2(&back, two, 4));
    cr_assert_eq(back, 8);
}

Test(simcuda_pools, freed_memory_faults_when_used) {
    CUdeviceptr at;
    OK(cuMemAllocAsync(&at, 4 * MIB, NULL));
    OK(cuMemFreeAsync(at, NULL));
    OK(cuMemsetD32Async(at, 1, 1, NULL));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

Test(simcuda_pools, freed_on_another_stream) {
    CUdeviceptr at;
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocAsync(&at, 4 * MIB, NULL));
    OK(proof_launch("sim_wait", stream, 0, 0, 0));
    OK(cuMemFreeAsync(at, stream));
    OK(cuMemsetD32Async(at, 1, 1, NULL));
    OK(cuStreamSynchronize(NULL));
    cr_assert_eq(proof_usage(0).faults, 0, "its free has not been executed");
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
}

Test(simcuda_pools, cu_mem_free_of_pool_memory_does_not_wait) {
    CUdeviceptr pooled, plain;
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAllocAsync(&pooled, 4 * MIB, NULL));
    OK(cuMemAlloc_v2(&plain, 4 * MIB));
    OK(cuCtxSynchronize());
    OK(proof_launch("sim_wait", stream, 0, 0, 0));
    OK(cuMemFree_v2(pooled));
    cr_assert_eq(proof_usage(0).pending, 1);
    sim_release_kernels(1);
    OK(cuCtxSynchronize());
    sim_set_latency_us(20000);
    OK(cuMemsetD32Async(plain, 1, 1, stream));
    OK(cuMemFree_v2(plain));
    cr_assert_eq(proof_usage(0).pending, 0, "of plain memory it does");
    cr_assert_eq(proof_usage(0).faults, 0);
}

Test(simcuda_pools, pools_of_the_program) {
    CUmemPoolProps props = {
        .allocType = CU_MEM_ALLOCATION_PINNED, .location = {CU_MEM_LOCATION_DEVICE, 0}, .maxSize = 8 * MIB};
    CUmemoryPool pool, owner;
    CUdeviceptr at, more;
    uint64_t before = proof_usage(0).used;
    OK(cuMemPoolCreate(&pool, &props));
    OK(cuMemAllocFromPoolAsync(&at, 6 * MIB, pool, NULL));
    REFUSED(cuMemAllocFromPoolAsync(&more, 4 * MIB, pool, NULL), CUDA_ERROR_OUT_OF_MEMORY);
    OK(cuPointerGetAttribute(&owner, CU_POINTER_MEMPOOL_HANDLE, at));
    cr_assert_eq(owner, pool);
    OK(cuMemPoolDestroy(pool));
    REFUSED(cuMemAllocFromPoolAsync(&more, MIB, pool, NULL), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(at, NULL));
    OK(cuCtxSynchronize());
    cr_assert_eq(proof_usage(0).used, before);
    REFUSED(cuMemPoolDestroy(default_pool()), CUDA_ERROR_INVALID_VALUE);
}

static void two_devices(void) {
    setenv("SIMCUDA_DEVICES", "2", 1);
    proof_begin();
}

Test(simcuda_pool_access, access_is_the_pools, .init = two_devices) {
    CUcontext second;
    CUdeviceptr at;
    CUmemAccessDesc access = proof_access(1);
    OK(cuMemAllocAsync(&at, 4 * MIB, NULL));
    OK(cuCtxSynchronize());
    OK(cuMemPoolSetAccess(default_pool(), &access, 1));
    OK(cuDevicePrimaryCtxRetain(&second, 1));
    OK(cuCtxSetCurrent(second));
    OK(proof_launch("sim_touch", NULL, at, 100, 0));
    OK(cuCtxSynchronize());
    access.flags = CU_MEM_ACCESS_NONE;
    OK(cuMemPoolSetAccess(default_pool(), &access, 1));
    OK(proof_launch("sim_touch", NULL, at, 100, 0));
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* ---- captures */

static CUstream capture(int mode) {
    CUstream stream;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamBeginCapture_v2(stream, mode));
    return stream;
}

Test(simcuda_capture, what_is_captured_is_executed_at_launch) {
    CUdeviceptr at;
    CUgraph graph;
    CUgraphExec exec;
    uint32_t back;
    OK(cuMemAlloc_v2(&at, MIB));
    OK(cuMemsetD32_v2(at, 1, 1));
    OK(cuCtxSynchronize());
    CUstream stream = capture(CU_CAPTURE_RELAXED);
    OK(cuMemsetD32Async(at, 2, 1, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuMemcpyDtoH_v2(&back, at, 4));
    cr_assert_eq(back, 1);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphDestroy(graph));
    for (int i = 0; i < 2; i++) {
        OK(cuMemsetD32_v2(at, 1, 1));
        OK(cuCtxSynchronize());
        OK(cuGraphLaunch(exec, stream));
        OK(cuStreamSynchronize(stream));
        OK(cuMemcpyDtoH_v2(&back, at, 4));
        cr_assert_eq(back, 2);
    }
    OK(cuGraphExecDestroy(exec));
}

static CUresult by_other_thread;
static int its_mode;

static void *unsafe_call(void *unused) {
    CUdeviceptr at;
    int mode = its_mode;
    cuCtxSetCurrent(proof_context);
    cuThreadExchangeStreamCaptureMode(&mode);
    by_other_thread = cuMemAlloc_v2(&at, 100);
    return unused;
}

/* Another thread makes an unsafe call while this thread captures. Returns the result of the capture's end; that of the
 * call is in by_other_thread. */
static CUresult disturbed(int mode, int others_mode) {
    pthread_t thread;
    CUgraph graph = NULL;
    CUstream stream = capture(mode);
    its_mode = others_mode;
    pthread_create(&thread, NULL, unsafe_call, NULL);
    pthread_join(thread, NULL);
    return cuStreamEndCapture(stream, &graph);
}

Test(simcuda_capture, a_global_capture_forbids_unsafe_calls_to_all_threads) {
    cr_assert_eq(disturbed(CU_CAPTURE_GLOBAL, CU_CAPTURE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    cr_assert_eq(by_other_thread, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    OK(disturbed(CU_CAPTURE_GLOBAL, CU_CAPTURE_THREAD_LOCAL));
    cr_assert_eq(by_other_thread, CUDA_SUCCESS);
    OK(disturbed(CU_CAPTURE_GLOBAL, CU_CAPTURE_RELAXED));
    OK(disturbed(CU_CAPTURE_THREAD_LOCAL, CU_CAPTURE_GLOBAL));
    OK(disturbed(CU_CAPTURE_RELAXED, CU_CAPTURE_GLOBAL));
}

Test(simcuda_capture, a_threads_own_capture_forbids_them_to_it) {
    CUdeviceptr at;
    CUgraph graph;
    CUstream stream = capture(CU_CAPTURE_THREAD_LOCAL);
    int mode = CU_CAPTURE_RELAXED;
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    OK(cuMemAlloc_v2(&at, 100));
    OK(cuThreadExchangeStreamCaptureMode(&mode));
    REFUSED(cuMemAlloc_v2(&at, 100), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    REFUSED(cuMemsetD32Async(at, 1, 1, stream), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    REFUSED(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    cr_assert_null(graph);
}

Test(simcuda_capture, waiting_for_a_capture_breaks_it) {
    CUgraph graph;
    CUstream stream = capture(CU_CAPTURE_RELAXED);
    REFUSED(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    REFUSED(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    stream = capture(CU_CAPTURE_RELAXED);
    REFUSED(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    REFUSED(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    REFUSED(cuStreamBeginCapture_v2(NULL, CU_CAPTURE_RELAXED), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

Test(simcuda_capture, events_draw_other_streams_in) {
    CUdeviceptr at;
    CUstream stream = capture(CU_CAPTURE_RELAXED), other;
    CUevent event;
    CUgraph graph;
    int status;
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&event, 0));
    OK(cuEventRecord(event, stream));
    REFUSED(cuEventQuery(event), CUDA_ERROR_CAPTURED_EVENT);
    OK(cuStreamWaitEvent(other, event, 0));
    OK(cuStreamIsCapturing(other, &status));
    cr_assert_eq(status, CU_CAPTURE_ACTIVE);
    OK(cuMemAllocAsync(&at, MIB, other));
    REFUSED(cuStreamEndCapture(other, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
    OK(cuEventRecord(event, other));
    OK(cuStreamWaitEvent(stream, event, 0));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuStreamIsCapturing(other, &status));
    cr_assert_eq(status, CU_CAPTURE_NONE);
    REFUSED(cuStreamWaitEvent(other, event, 0), CUDA_ERROR_CAPTURED_EVENT);
    OK(cuStreamIsCapturing(other, &status));
    cr_assert_eq(status, CU_CAPTURE_NONE);
    OK(cuEventRecord(event, stream));
    OK(cuStreamWaitEvent(other, event, 0));
}

static void *end_it(void *stream) {
    CUgraph graph;
    cuCtxSetCurrent(proof_context);
    by_other_thread = cuStreamEndCapture(stream, &graph);
    return NULL;
}

Test(simcuda_capture, another_thread_cannot_end_it) {
    pthread_t thread;
    CUgraph graph;
    CUstream stream = capture(CU_CAPTURE_GLOBAL);
    pthread_create(&thread, NULL, end_it, stream);
    pthread_join(thread, NULL);
    cr_assert_eq(by_other_thread, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
    OK(cuStreamEndCapture(stream, &graph));
}

/* ---- memory of graphs */

static uint64_t graph_memory(int which) {
    uint64_t value;
    OK(cuDeviceGetGraphMemAttribute(0, which, &value));
    return value;
}

Test(simcuda_capture, memory_of_a_graph_is_taken_at_launch) {
    CUdeviceptr at;
    CUgraph graph;
    CUgraphExec exec;
    uint64_t before = proof_usage(0).used;
    CUstream stream = capture(CU_CAPTURE_RELAXED);
    OK(cuMemAllocAsync(&at, 4 * MIB, stream));
    OK(cuMemsetD32Async(at, 1, 1, stream));
    OK(cuMemFreeAsync(at, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    cr_assert_eq(proof_usage(0).used, before);
    for (int i = 0; i < 3; i++) OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    cr_assert_eq(proof_usage(0).used, before + 4 * MIB, "kept for the next launch");
    cr_assert_eq(graph_memory(CU_GRAPH_MEM_USED), 0);
    cr_assert_eq(graph_memory(CU_GRAPH_MEM_RESERVED), 4 * MIB);
    OK(cuDeviceGraphMemTrim(0));
    cr_assert_eq(proof_usage(0).used, before);
    cr_assert_eq(proof_usage(0).faults, 0);
}

Test(simcuda_capture, what_a_graph_leaves_is_freed_by_others) {
    CUdeviceptr at;
    CUgraph graph;
    CUgraphExec exec;
    CUstream stream = capture(CU_CAPTURE_RELAXED);
    OK(cuMemAllocAsync(&at, 4 * MIB, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    REFUSED(cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemFreeAsync(at, stream));
    OK(cuGraphLaunch(exec, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemFree_v2(at));
    cr_assert_eq(graph_memory(CU_GRAPH_MEM_USED), 0);
}

/* ---- nodes that are added one by one */

static CUdeviceptr words_of(uint32_t value, size_t count) {
    CUdeviceptr at;
    OK(cuMemAlloc_v2(&at, count * 4));
    OK(cuMemsetD32_v2(at, value, count));
    return at;
}

static uint32_t word_at(CUdeviceptr at) {
    uint32_t word;
    OK(cuMemcpyDtoH_v2(&word, at, 4));
    return word;
}

static CUDA_MEMCPY3D copying(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
    return (CUDA_MEMCPY3D){.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                           .srcDevice = from,
                           .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                           .dstDevice = to,
                           .WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1};
}

static void launch_once(CUgraph graph) {
    CUgraphExec exec;
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuGraphLaunch(exec, NULL));
    OK(cuStreamSynchronize(NULL));
    OK(cuGraphExecDestroy(exec));
}

Test(simcuda_capture, nodes_copy_and_fill_at_the_launch) {
    CUdeviceptr from = words_of(1, 16), to = words_of(2, 16);
    CUgraph graph, child, copy;
    CUgraphNode node;
    CUgraphNodeParams is = {.type = CU_GRAPH_NODE_MEMSET, .set = {from + 8, 0, 5, 4, 1, 1}};
    CUDA_MEMCPY3D all = copying(to, from, 64);
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddNode(&node, child, NULL, 0, &is));
    is = (CUgraphNodeParams){.type = CU_GRAPH_NODE_MEMCPY, .copy.copyParams = copying(from, from + 8, 4)};
    OK(cuGraphAddNode(&node, child, NULL, 0, &is));
    OK(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child));
    OK(cuGraphChildGraphNodeGetGraph(node, &copy));
    cr_assert_neq(copy, child);
    OK(cuGraphDestroy(child)); /* the node has a copy */
    OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &all, NULL));
    cr_assert(word_at(from) == 1 && word_at(to) == 2, "nothing happens before the launch");
    launch_once(graph);
    cr_assert(word_at(to) == 5 && word_at(to + 4) == 1 && word_at(to + 8) == 5, "in order");
    OK(cuGraphDestroy(graph));
}

Test(simcuda_capture, a_node_touches_its_memory_at_the_launch) {
    CUdeviceptr from = words_of(1, 16), to = words_of(2, 16);
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUDA_MEMCPY3D all = copying(to, from, 64);
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &all, NULL));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemFree_v2(from));
    OK(cuGraphLaunch(exec, NULL));
    REFUSED(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    cr_assert_eq(proof_usage(0).faults, 1);
}

Test(simcuda_capture, a_graph_with_memory_can_only_move_into_another) {
    CUdeviceptr to = words_of(2, 16);
    CUgraph graph, child;
    CUgraphNode node;
    CUgraphNodeParams is = {.type = CU_GRAPH_NODE_MEM_ALLOC, .alloc = {.bytesize = 4 * MIB}};
    is.alloc.poolProps = (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_PINNED, .location = {1, 0}};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphCreate(&child, 0));
    OK(cuGraphAddNode(&node, child, NULL, 0, &is));
    CUdeviceptr at = is.alloc.dptr;
    is = (CUgraphNodeParams){.type = CU_GRAPH_NODE_MEMSET, .set = {at, 0, 7, 4, 16, 1}};
    OK(cuGraphAddNode(&node, child, NULL, 0, &is));
    is = (CUgraphNodeParams){.type = CU_GRAPH_NODE_MEMCPY, .copy.copyParams = copying(to, at, 64)};
    OK(cuGraphAddNode(&node, child, NULL, 0, &is));
    OK(cuGraphAddMemFreeNode(&node, child, NULL, 0, at));
    REFUSED(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child), CUDA_ERROR_NOT_SUPPORTED);
    is = (CUgraphNodeParams){.type = CU_GRAPH_NODE_GRAPH, .child = {child, CU_GRAPH_CHILD_MOVE}};
    OK(cuGraphAddNode(&node, graph, NULL, 0, &is));
    REFUSED(cuGraphDestroy(child), CUDA_ERROR_INVALID_VALUE);
    REFUSED(cuGraphAddChildGraphNode(&node, graph, NULL, 0, child), CUDA_ERROR_INVALID_VALUE);
    launch_once(graph);
    cr_assert_eq(word_at(to), 7);
    OK(cuGraphDestroy(graph));
    cr_assert_eq(graph_memory(CU_GRAPH_MEM_USED), 0);
}

static CUDA_KERNEL_NODE_PARAMS launching(const char *kernel, void **arguments) {
    return (CUDA_KERNEL_NODE_PARAMS){proof_kernel(kernel), 1, 1, 1, 32, 1, 1, 0, arguments, NULL, NULL, NULL};
}

Test(simcuda_capture, a_kernel_node_has_its_arguments_from_when_it_was_added) {
    CUdeviceptr at = words_of(1, 16);
    uint64_t words = 16, value = 9;
    void *arguments[] = {&at, &words, &value};
    CUDA_KERNEL_NODE_PARAMS fills = launching("sim_fill", arguments);
    CUgraph graph;
    CUgraphNode node;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &fills));
    value = 10;
    cr_assert_eq(word_at(at), 1);
    launch_once(graph);
    cr_assert_eq(word_at(at + 60), 9);
    fills.func = NULL;
    REFUSED(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &fills), CUDA_ERROR_INVALID_VALUE);
    OK(cuGraphDestroy(graph));
}

Test(simcuda_capture, event_nodes_record_and_wait_at_the_launch) {
    CUdeviceptr at = words_of(1, 16);
    CUstream other;
    CUevent begins, ends;
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec exec;
    CUgraphNodeParams is = {.type = CU_GRAPH_NODE_MEMSET, .set = {at, 0, 5, 4, 1, 1}};
    OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    OK(cuCtxSynchronize()); /* the words are there */
    OK(cuEventCreate(&begins, 0));
    OK(cuEventCreate(&ends, 0));
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddEventWaitNode(&node, graph, NULL, 0, begins));
    OK(cuGraphAddNode(&node, graph, NULL, 0, &is));
    is = (CUgraphNodeParams){.type = CU_GRAPH_NODE_EVENT_RECORD, .event = {ends}};
    OK(cuGraphAddNode(&node, graph, NULL, 0, &is));
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(proof_launch("sim_wait", other, 0, 0, 0));
    OK(cuEventRecord(begins, other));
    OK(cuGraphLaunch(exec, NULL));
    REFUSED(cuEventQuery(ends), CUDA_ERROR_NOT_READY);
    uint32_t word;
    cr_assert(!sim_peek(&word, at, 4) && word == 1, "it waits");
    sim_release_kernels(1);
    OK(cuEventSynchronize(ends));
    cr_assert_eq(word_at(at), 5);
    OK(cuGraphExecDestroy(exec));
    OK(cuGraphDestroy(graph));
}

/* Makes a graph with one conditional node. Each body of the node fills the word at `at`, and then sets the condition
 * to `last`. */
static CUgraph conditional(int type, unsigned bodies, unsigned value, CUdeviceptr at, uint64_t last) {
    CUgraph graph;
    CUgraphNode node;
    CUgraphNodeParams is = {.type = CU_GRAPH_NODE_CONDITIONAL, .conditional = {.type = type, .size = bodies}};
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphConditionalHandleCreate(&is.conditional.handle, graph, NULL, value, CU_GRAPH_COND_ASSIGN_DEFAULT));
    void *arguments[] = {&is.conditional.handle, &last};
    OK(cuGraphAddNode(&node, graph, NULL, 0, &is));
    for (unsigned i = 0; i < bodies; i++) {
        CUgraphNodeParams fills = {.type = CU_GRAPH_NODE_MEMSET, .set = {at, 0, 100 + i, 4, 1, 1}};
        CUgraphNodeParams sets = {.type = CU_GRAPH_NODE_KERNEL, .kernel = launching("sim_set_condition", arguments)};
        OK(cuGraphAddNode(&node, is.conditional.phGraph_out[i], NULL, 0, &fills));
        OK(cuGraphAddNode(&node, is.conditional.phGraph_out[i], NULL, 0, &sets));
    }
    return graph;
}

static uint32_t after_launch(int type, unsigned bodies, unsigned value, uint64_t last) {
    CUdeviceptr at = words_of(1, 1);
    CUgraph graph = conditional(type, bodies, value, at, last);
    launch_once(graph);
    launch_once(graph); /* the default comes back */
    OK(cuGraphDestroy(graph));
    return word_at(at);
}

Test(simcuda_capture, a_condition_chooses_the_bodies) {
    cr_assert_eq(after_launch(CU_GRAPH_COND_IF, 1, 1, 0), 100);
    cr_assert_eq(after_launch(CU_GRAPH_COND_IF, 1, 0, 0), 1);
    cr_assert_eq(after_launch(CU_GRAPH_COND_IF, 2, 0, 0), 101);
    cr_assert_eq(after_launch(CU_GRAPH_COND_WHILE, 1, 3, 0), 100);
    cr_assert_eq(after_launch(CU_GRAPH_COND_SWITCH, 3, 2, 0), 102);
    cr_assert_eq(after_launch(CU_GRAPH_COND_SWITCH, 3, 3, 0), 1);
}

Test(simcuda_capture, a_body_touches_its_memory_when_it_is_executed) {
    CUdeviceptr at = words_of(1, 1);
    CUgraph graph = conditional(CU_GRAPH_COND_IF, 1, 1, at, 0), other;
    CUgraphNode node;
    CUgraphExec exec;
    OK(cuGraphCreate(&other, 0));
    REFUSED(cuGraphAddChildGraphNode(&node, other, NULL, 0, graph), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
    OK(cuMemFree_v2(at));
    OK(cuGraphLaunch(exec, NULL));
    REFUSED(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
}
