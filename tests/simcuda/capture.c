/* capture.c — streams that record instead of executing. A capture forbids unsafe calls: in global mode to all threads,
 * in thread-local mode to its own thread, in relaxed mode to none. A forbidden call breaks the captures that forbid
 * it. */
#include "sim.h"

#include <stdlib.h>

static struct sim_capture *captures;
static __thread int thread_mode = CU_CAPTURE_GLOBAL;
static uint64_t next_id = 1;

static bool forbids(const struct sim_capture *self) {
    bool mine = pthread_equal(self->thread, pthread_self());
    if (thread_mode == CU_CAPTURE_RELAXED || self->mode == CU_CAPTURE_RELAXED) return false;
    return mine || (self->mode == CU_CAPTURE_GLOBAL && thread_mode == CU_CAPTURE_GLOBAL);
}

CUresult capture_forbids(void) {
    CUresult result = CUDA_SUCCESS;
    for (struct sim_capture *self = captures; self; self = self->next)
        if (forbids(self)) {
            self->broken = true;
            result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
        }
    return result;
}

static CUresult break_of(struct sim_context *ctx, bool only_blocking, CUresult error) {
    CUresult result = CUDA_SUCCESS;
    for (struct sim_stream *stream = stream_list; stream; stream = stream->next)
        if (stream->ctx == ctx && stream->capture && (stream->blocking || !only_blocking)) {
            stream->capture->broken = true;
            result = error;
        }
    return result;
}

CUresult capture_forbids_sync(struct sim_context *ctx) {
    CUresult result = break_of(ctx, false, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    return result ? result : capture_forbids();
}

/* Work on the legacy stream would wait for blocking streams. So it breaks the captures of blocking streams. */
CUresult capture_forbids_legacy(struct sim_context *ctx) {
    return ctx ? break_of(ctx, true, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) : CUDA_SUCCESS;
}

bool capture_goes_on(const struct sim_capture *self, uint64_t id) {
    const struct sim_capture *found = captures;
    while (found && found != self) found = found->next;
    return found && found->id == id;
}

CUresult capture_add(struct sim_capture *self, const struct op *model) {
    if (self->broken) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    return graph_add(self->graph, model, NULL);
}

static void leave(struct sim_capture *self) {
    for (struct sim_stream *stream = stream_list; stream; stream = stream->next)
        if (stream->capture == self) stream->capture = NULL;
    struct sim_capture **link = &captures;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
}

static void drop(struct sim_capture *self) {
    leave(self);
    graph_drop(self->graph);
    free(self);
}

/* A capture ends with the stream that it began on, and with that stream's context. */
void capture_forget(struct sim_context *ctx) {
    for (struct sim_capture *self = captures, *next; self; self = next) {
        next = self->next;
        if (self->origin->ctx == ctx) drop(self);
    }
}

void capture_forget_stream(struct sim_stream *stream) {
    if (stream->capture && stream->capture->origin == stream) drop(stream->capture);
}

/* Begins a capture into a new graph, or behind the nodes of the given graph, which stays the caller's. */
static CUresult begin(CUstream handle, int mode, CUgraph given) {
    struct sim_stream *stream = stream_get(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    if (mode < 0 || mode > CU_CAPTURE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (stream->capture) return CUDA_ERROR_INVALID_VALUE;
    struct sim_capture *self = calloc(1, sizeof *self);
    if (!self) return CUDA_ERROR_OUT_OF_MEMORY;
    *self = (struct sim_capture){.next = captures,
                                 .graph = given ? graph_hold(given) : graph_new(),
                                 .given = given != NULL,
                                 .origin = stream,
                                 .mode = mode,
                                 .thread = pthread_self(),
                                 .id = next_id++};
    stream->capture = captures = self;
    return CUDA_SUCCESS;
}
SAME(cuStreamBeginCapture, NEEDS_CONTEXT, (CUstream stream), begin(stream, CU_CAPTURE_GLOBAL, NULL))
SAME(cuStreamBeginCapture_ptsz, NEEDS_CONTEXT, (CUstream stream),
     begin(stream_per_thread(stream), CU_CAPTURE_GLOBAL, NULL))
SAME(cuStreamBeginCapture_v2, NEEDS_CONTEXT, (CUstream stream, int mode), begin(stream, mode, NULL))
SAME(cuStreamBeginCapture_v2_ptsz, NEEDS_CONTEXT, (CUstream stream, int mode),
     begin(stream_per_thread(stream), mode, NULL))
#define TO_GRAPH CUstream stream, CUgraph graph, const CUgraphNode *after, const void *edges, size_t count, int mode
SAME(cuStreamBeginCaptureToGraph, NEEDS_CONTEXT, (TO_GRAPH),
     ((void)after, (void)edges, (void)count, graph ? begin(stream, mode, graph) : CUDA_ERROR_INVALID_VALUE))
SAME(cuStreamBeginCaptureToGraph_ptsz, NEEDS_CONTEXT, (TO_GRAPH),
     ((void)after, (void)edges, (void)count,
      graph ? begin(stream_per_thread(stream), mode, graph) : CUDA_ERROR_INVALID_VALUE))

static CUresult end(CUstream handle, CUgraph *out) {
    struct sim_stream *stream = stream_get(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    struct sim_capture *self = stream->capture;
    if (!self) return CUDA_ERROR_INVALID_VALUE;
    if (self->origin != stream) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    if (self->mode != CU_CAPTURE_RELAXED && !pthread_equal(self->thread, pthread_self()))
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    leave(self);
    CUresult result = self->broken ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS;
    if (result || self->given) graph_drop(self->graph);
    if (out) *out = result ? NULL : self->graph;
    free(self);
    return result;
}
/* Only the capture itself is simulated: not the callback, nor the nodes that were in the graph before. */
#define AGAIN CUstream stream, int mode, CUgraph graph, void *callback, void *data
SAME(cuStreamBeginRecaptureToGraph, NEEDS_CONTEXT, (AGAIN),
     ((void)callback, (void)data, graph ? begin(stream, mode, graph) : CUDA_ERROR_INVALID_VALUE))
SAME(cuStreamBeginRecaptureToGraph_ptsz, NEEDS_CONTEXT, (AGAIN),
     ((void)callback, (void)data, graph ? begin(stream_per_thread(stream), mode, graph) : CUDA_ERROR_INVALID_VALUE))
SAME(cuStreamBeginCaptureToCig, NEEDS_CONTEXT, (CUstream stream, void *parameters),
     ((void)parameters, begin(stream, CU_CAPTURE_RELAXED, NULL)))
SAME(cuStreamBeginCaptureToCig_ptsz, NEEDS_CONTEXT, (CUstream stream, void *parameters),
     ((void)parameters, begin(stream_per_thread(stream), CU_CAPTURE_RELAXED, NULL)))

/* Ends the capture and drops its graph. */
static CUresult end_without_graph(CUstream stream) {
    CUgraph graph = NULL;
    CUresult result = end(stream, &graph);
    if (graph) graph_drop(graph);
    return result;
}
SAME(cuStreamEndCaptureToCig, NEEDS_CONTEXT, (CUstream stream), end_without_graph(stream))
SAME(cuStreamEndCaptureToCig_ptsz, NEEDS_CONTEXT, (CUstream stream), end_without_graph(stream_per_thread(stream)))

SAME(cuStreamEndCapture, NEEDS_CONTEXT, (CUstream stream, CUgraph *out), end(stream, out))
SAME(cuStreamEndCapture_ptsz, NEEDS_CONTEXT, (CUstream stream, CUgraph *out), end(stream_per_thread(stream), out))

static int status_of(const struct sim_stream *stream) {
    return !stream->capture ? CU_CAPTURE_NONE : stream->capture->broken ? CU_CAPTURE_INVALIDATED : CU_CAPTURE_ACTIVE;
}

static CUresult info(CUstream handle, int *status, uint64_t *id, CUgraph *graph, size_t *count) {
    struct sim_stream *stream = stream_get(handle);
    if (!stream) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = capture_forbids_legacy(stream->legacy ? stream->ctx : NULL);
    if (result) return result;
    *status = status_of(stream);
    if (id && *status == CU_CAPTURE_ACTIVE) *id = stream->capture->id;
    if (graph && stream->capture) *graph = stream->capture->graph;
    if (count) *count = 0;
    return CUDA_SUCCESS;
}
#define INFO_V2 CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes, size_t *count
#define INFO_V3                                                                                                        \
    CUstream stream, int *status, uint64_t *id, CUgraph *graph, const CUgraphNode **nodes, const void **edges,         \
        size_t *count
SAME(cuStreamIsCapturing, NEEDS_CONTEXT, (CUstream stream, int *status), info(stream, status, NULL, NULL, NULL))
SAME(cuStreamIsCapturing_ptsz, NEEDS_CONTEXT, (CUstream stream, int *status),
     info(stream_per_thread(stream), status, NULL, NULL, NULL))
SAME(cuStreamGetCaptureInfo, NEEDS_CONTEXT, (CUstream stream, int *status, uint64_t *id),
     info(stream, status, id, NULL, NULL))
SAME(cuStreamGetCaptureInfo_ptsz, NEEDS_CONTEXT, (CUstream stream, int *status, uint64_t *id),
     info(stream_per_thread(stream), status, id, NULL, NULL))
SAME(cuStreamGetCaptureInfo_v2, NEEDS_CONTEXT, (INFO_V2), ((void)nodes, info(stream, status, id, graph, count)))
SAME(cuStreamGetCaptureInfo_v2_ptsz, NEEDS_CONTEXT, (INFO_V2),
     ((void)nodes, info(stream_per_thread(stream), status, id, graph, count)))
SAME(cuStreamGetCaptureInfo_v3, NEEDS_CONTEXT, (INFO_V3),
     ((void)nodes, (void)edges, info(stream, status, id, graph, count)))
SAME(cuStreamGetCaptureInfo_v3_ptsz, NEEDS_CONTEXT, (INFO_V3),
     ((void)nodes, (void)edges, info(stream_per_thread(stream), status, id, graph, count)))

API(cuThreadExchangeStreamCaptureMode, NEEDS_INIT, (int *mode), (mode)) {
    if (!mode || *mode < 0 || *mode > CU_CAPTURE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
    int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
