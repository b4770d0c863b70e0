/* rt_stream.c — the runtime's streams, events, captures, graphs, and launches. */
#include "rt.h"

#include <string.h>

#define D rt_legacy

RT_CALL(cudaStreamCreate, (CUstream * out), D.cuStreamCreateWithPriority(out, 0, 0))
RT_CALL(cudaStreamCreateWithFlags, (CUstream * out, unsigned flags), D.cuStreamCreateWithPriority(out, flags, 0))
RT_CALL(cudaStreamCreateWithPriority, (CUstream * out, unsigned flags, int priority),
        D.cuStreamCreateWithPriority(out, flags, priority))
RT_CALL(cudaStreamDestroy, (CUstream stream), D.cuStreamDestroy(stream))
RT_STREAM(cudaStreamQuery, (CUstream stream), d->cuStreamQuery(stream))
RT_STREAM(cudaStreamSynchronize, (CUstream stream), d->cuStreamSynchronize(stream))
RT_STREAM(cudaStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags),
          d->cuStreamWaitEvent(stream, event, flags))
RT_STREAM(cudaLaunchHostFunc, (CUstream stream, CUhostFn run, void *data), d->cuLaunchHostFunc(stream, run, data))
RT_CALL(cudaEventCreate, (CUevent * out), D.cuEventCreate(out, 0))
RT_CALL(cudaEventCreateWithFlags, (CUevent * out, unsigned flags), D.cuEventCreate(out, flags))
RT_CALL(cudaEventDestroy, (CUevent event), D.cuEventDestroy(event))
RT_STREAM(cudaEventRecord, (CUevent event, CUstream stream), d->cuEventRecord(event, stream))
RT_CALL(cudaEventQuery, (CUevent event), D.cuEventQuery(event))
RT_CALL(cudaEventSynchronize, (CUevent event), D.cuEventSynchronize(event))
RT_CALL(cudaEventElapsedTime, (float *out, CUevent from, CUevent to), D.cuEventElapsedTime(out, from, to))

RT_STREAM(cudaStreamBeginCapture, (CUstream stream, int mode), d->cuStreamBeginCapture(stream, mode))
RT_STREAM(cudaStreamBeginCaptureToGraph,
          (CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges, size_t n, int mode),
          d->cuStreamBeginCaptureToGraph(stream, graph, after, edges, n, mode))
RT_STREAM(cudaStreamEndCapture, (CUstream stream, CUgraph *out), d->cuStreamEndCapture(stream, out))
RT_STREAM(cudaStreamIsCapturing, (CUstream stream, int *out), d->cuStreamIsCapturing(stream, out))
RT_CALL(cudaThreadExchangeStreamCaptureMode, (int *mode), D.cuThreadExchangeStreamCaptureMode(mode))

RT_CALL(cudaGraphCreate, (CUgraph * out, unsigned flags), D.cuGraphCreate(out, flags))
RT_CALL(cudaGraphDestroy, (CUgraph graph), D.cuGraphDestroy(graph))
RT_CALL(cudaGraphInstantiate, (CUgraphExec * out, CUgraph graph, unsigned long long flags),
        D.cuGraphInstantiateWithFlags(out, graph, flags))
RT_STREAM(cudaGraphLaunch, (CUgraphExec exec, CUstream stream), d->cuGraphLaunch(exec, stream))
RT_CALL(cudaGraphExecDestroy, (CUgraphExec exec), D.cuGraphExecDestroy(exec))
RT_CALL(cudaGraphAddMemAllocNode,
        (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t n, CUDA_MEM_ALLOC_NODE_PARAMS *p),
        D.cuGraphAddMemAllocNode(node, graph, after, n, p))
RT_CALL(cudaGraphAddMemFreeNode, (CUgraphNode * node, CUgraph graph, const CUgraphNode *after, size_t n, void *at),
        D.cuGraphAddMemFreeNode(node, graph, after, n, P(at)))

/* ---- launches: the program launches a kernel by a host function, which the compiler's code has registered for it */

enum { KERNELS = 64 };
static struct {
    const void *host;
    const char *name;
} kernels[KERNELS];
static int count;

#define EXPORTED __attribute__((visibility("default")))
EXPORTED void **__cudaRegisterFatBinary(void *image);
EXPORTED void **__cudaRegisterFatBinary(void *image) {
    static void *handle;
    handle = image;
    return &handle;
}
EXPORTED void __cudaRegisterFatBinaryEnd(void **handle);
EXPORTED void __cudaRegisterFatBinaryEnd(void **handle) { (void)handle; }
EXPORTED void __cudaUnregisterFatBinary(void **handle);
EXPORTED void __cudaUnregisterFatBinary(void **handle) { (void)handle; }
EXPORTED void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                                     void *tid, void *bid, void *bdim, void *gdim, int *warp);
EXPORTED void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name, int limit,
                                     void *tid, void *bid, void *bdim, void *gdim, int *warp) {
    (void)handle, (void)device, (void)limit, (void)tid, (void)bid, (void)bdim, (void)gdim, (void)warp;
    if (count == KERNELS) return;
    kernels[count].host = host;
    kernels[count++].name = name;
}

typedef struct {
    unsigned x, y, z;
} dim3;

static cudaError_t launch(const struct rt_driver *d, const void *host, dim3 grid, dim3 block, void **arguments,
                          size_t shared, CUstream stream) {
    CUmodule module;
    CUfunction function;
    int i = 0;
    while (i < count && kernels[i].host != host) i++;
    if (i == count) return 98; /* cudaErrorInvalidDeviceFunction */
    cudaError_t error = D.cuModuleLoadData(&module, "");
    if (!error) error = D.cuModuleGetFunction(&function, module, kernels[i].name);
    if (error) return error;
    return d->cuLaunchKernel(function, grid.x, grid.y, grid.z, block.x, block.y, block.z, (unsigned)shared, stream,
                             arguments, NULL);
}
RT_STREAM(cudaLaunchKernel, (const void *host, dim3 grid, dim3 block, void **arguments, size_t shared, CUstream stream),
          launch(d, host, grid, block, arguments, shared, stream))
