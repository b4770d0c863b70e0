/* stream.c — streams and events. Stream 0 is the context's legacy stream, or the thread's own for the _ptsz entries. */
#include "sim.h"

#include <stdlib.h>

struct sim_stream *stream_list;
static struct sim_event *events;
static uint64_t next_id = 1;

static struct sim_stream *add(struct sim_context *ctx, bool blocking) {
    struct sim_stream *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    *self = (struct sim_stream){.next = stream_list, .ctx = ctx, .blocking = blocking, .id = next_id++};
    return stream_list = self;
}

struct sim_stream *stream_of_context(struct sim_context *ctx) {
    for (struct sim_stream *self = stream_list; self; self = self->next)
        if (self->ctx == ctx && self->legacy && !self->destroyed) return self;
    struct sim_stream *self = add(ctx, true);
    if (self) self->legacy = true;
    return self;
}

static struct sim_stream *of_thread(struct sim_context *ctx) {
    pthread_t me = pthread_self();
    for (struct sim_stream *self = stream_list; self; self = self->next)
        if (self->ctx == ctx && self->per_thread && pthread_equal(self->thread, me) && !self->destroyed) return self;
    struct sim_stream *self = add(ctx, true);
    if (!self) return NULL;
    self->per_thread = true;
    self->thread = me;
    return self;
}

CUstream stream_per_thread(CUstream handle) { return handle ? handle : CU_STREAM_PER_THREAD; }

struct sim_stream *stream_get(CUstream handle) {
    struct sim_context *ctx = context_current();
    if (!handle || handle == CU_STREAM_LEGACY) return stream_of_context(ctx);
    if (handle == CU_STREAM_PER_THREAD) return of_thread(ctx);
    for (struct sim_stream *self = stream_list; self; self = self->next)
        if (self == handle) return self->destroyed ? NULL : self;
    return NULL;
}

static void drop(struct sim_stream *self) {
    struct sim_stream **link = &stream_list;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    free(self);
}

static void drop_operations(struct sim_stream *self) {
    while (self->head) {
        struct op *op = self->head;
        self->head = op->next;
        if (op->mark) op->mark->done = true;
        pool_executed(op);
        op_forget(op);
        free(op);
    }
    self->tail = NULL;
}

static void event_drop(struct sim_event *self) {
    struct sim_event **link = &events;
    while (*link != self) link = &(*link)->next;
    *link = self->next;
    mark_unref(self->mark);
    free(self);
}

void stream_forget(struct sim_context *ctx) {
    for (struct sim_stream *self = stream_list, *next; self; self = next) {
        next = self->next;
        if (self->ctx != ctx) continue;
        drop_operations(self);
        drop(self);
    }
    for (struct sim_event *event = events, *next; event; event = next) {
        next = event->next;
        if (event->ctx == ctx) event_drop(event);
    }
}

/* ---- streams */

static CUresult create(CUstream *out, unsigned flags, int priority) {
    if (!out || flags & ~(unsigned)CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    if (context_warm(context_current())) return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_stream *self = add(context_current(), !(flags & CU_STREAM_NON_BLOCKING));
    if (!self) return CUDA_ERROR_OUT_OF_MEMORY;
    self->flags = flags;
    self->priority = priority;
    *out = self;
    return CUDA_SUCCESS;
}
SAME(cuStreamCreate, NEEDS_CONTEXT, (CUstream * out, unsigned flags), create(out, flags, 0))
SAME(cuStreamCreateWithPriority, NEEDS_CONTEXT, (CUstream * out, unsigned flags, int priority),
     create(out, flags, priority))

static bool listed(const struct sim_stream *self) {
    for (struct sim_stream *at = stream_list; at; at = at->next)
        if (at == self) return true;
    return false;
}

/* Operations of the stream are still executed. This call waits for them; the real driver's call does not. */
static CUresult destroy(CUstream handle) {
    struct sim_stream *self = stream_get(handle);
    if (!self || self->legacy || self->per_thread) return CUDA_ERROR_INVALID_HANDLE;
    self->destroyed = true;
    capture_forget_stream(self);
    engine_drain_stream(self);
    if (listed(self)) drop(self);
    return CUDA_SUCCESS;
}
SAME(cuStreamDestroy, NEEDS_CONTEXT, (CUstream handle), destroy(handle))
SAME(cuStreamDestroy_v2, NEEDS_CONTEXT, (CUstream handle), destroy(handle))

static CUresult capturing(struct sim_stream *self) {
    if (!self->capture) return CUDA_SUCCESS;
    self->capture->broken = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

static CUresult query(CUstream handle) {
    struct sim_stream *self = stream_get(handle);
    if (!self) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = capturing(self);
    if (!result) result = capture_forbids_legacy(self->legacy ? self->ctx : NULL);
    return result ? result : engine_idle(self) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
SAME(cuStreamQuery, NEEDS_CONTEXT, (CUstream handle), query(handle))
SAME(cuStreamQuery_ptsz, NEEDS_CONTEXT, (CUstream handle), query(stream_per_thread(handle)))

/* A wait for the legacy stream also waits for earlier work of blocking streams. */
static CUresult synchronise(CUstream handle) {
    struct sim_stream *self = stream_get(handle);
    if (!self) return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = capturing(self);
    if (!result) result = capture_forbids_legacy(self->legacy ? self->ctx : NULL);
    if (result) return result;
    if (self->legacy) engine_add(self, &(struct op){.kind = OP_NOTHING}, NULL);
    return engine_drain_stream(self);
}
SAME(cuStreamSynchronize, NEEDS_CONTEXT, (CUstream handle), synchronise(handle))
SAME(cuStreamSynchronize_ptsz, NEEDS_CONTEXT, (CUstream handle), synchronise(stream_per_thread(handle)))

static CUresult figures(CUstream handle, unsigned *flags, int *priority, CUcontext *ctx, unsigned long long *id,
                        CUdevice *device) {
    struct sim_stream *self = stream_get(handle);
    if (!self) return CUDA_ERROR_INVALID_HANDLE;
    if (flags) *flags = self->flags;
    if (priority) *priority = self->priority;
    if (ctx) *ctx = self->ctx;
    if (id) *id = self->id;
    if (device) *device = self->ctx->device->id;
    return CUDA_SUCCESS;
}
#define FIGURE(name, type, ...)                                                                                        \
    SAME(name, NEEDS_CONTEXT, (CUstream handle, type * out), figures(handle, __VA_ARGS__))                             \
    SAME(name##_ptsz, NEEDS_CONTEXT, (CUstream handle, type * out), figures(stream_per_thread(handle), __VA_ARGS__))
FIGURE(cuStreamGetFlags, unsigned, out, NULL, NULL, NULL, NULL)
FIGURE(cuStreamGetPriority, int, NULL, out, NULL, NULL, NULL)
FIGURE(cuStreamGetCtx, CUcontext, NULL, NULL, out, NULL, NULL)
FIGURE(cuStreamGetId, unsigned long long, NULL, NULL, NULL, out, NULL)
FIGURE(cuStreamGetDevice, CUdevice, NULL, NULL, NULL, NULL, out)

/* ---- the program's functions */

static CUresult add_host(CUstream handle, struct op op) {
    struct sim_stream *self = stream_get(handle);
    if (!self) return CUDA_ERROR_INVALID_HANDLE;
    if (!op.host.run && !op.host.call) return CUDA_ERROR_INVALID_VALUE;
    if (op.kind == OP_CALLBACK && self->capture) return capturing(self);
    return engine_add(self, &op, NULL);
}
#define HOST ((struct op){.kind = OP_HOST, .host = {.run = run, .data = data}})
#define CALLBACK ((struct op){.kind = OP_CALLBACK, .host = {.call = call, .handle = handle, .data = data}})
SAME(cuLaunchHostFunc, NEEDS_CONTEXT, (CUstream handle, CUhostFn run, void *data), add_host(handle, HOST))
SAME(cuLaunchHostFunc_ptsz, NEEDS_CONTEXT, (CUstream handle, CUhostFn run, void *data),
     add_host(stream_per_thread(handle), HOST))
SAME(cuStreamAddCallback, NEEDS_CONTEXT, (CUstream handle, CUstreamCallback call, void *data, unsigned flags),
     flags ? CUDA_ERROR_INVALID_VALUE : add_host(handle, CALLBACK))
SAME(cuStreamAddCallback_ptsz, NEEDS_CONTEXT, (CUstream handle, CUstreamCallback call, void *data, unsigned flags),
     flags ? CUDA_ERROR_INVALID_VALUE : add_host(stream_per_thread(handle), CALLBACK))

static CUresult attach(CUstream handle, CUdeviceptr at) {
    struct block *block = space_find(at);
    if (!stream_get(handle)) return CUDA_ERROR_INVALID_HANDLE;
    return block && block->kind == KIND_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
SAME(cuStreamAttachMemAsync, NEEDS_CONTEXT, (CUstream handle, CUdeviceptr at, size_t length, unsigned flags),
     ((void)length, (void)flags, attach(handle, at)))
SAME(cuStreamAttachMemAsync_ptsz, NEEDS_CONTEXT, (CUstream handle, CUdeviceptr at, size_t length, unsigned flags),
     ((void)length, (void)flags, attach(stream_per_thread(handle), at)))

/* ---- events */

struct sim_event *event_get(CUevent handle) {
    for (struct sim_event *self = events; self; self = self->next)
        if (self == handle) return self;
    return NULL;
}

API(cuEventCreate, NEEDS_CONTEXT, (CUevent * out, unsigned flags), (out, flags)) {
    struct sim_event *self = calloc(1, sizeof *self);
    if (!out || !self) return CUDA_ERROR_INVALID_VALUE;
    *self = (struct sim_event){.next = events, .ctx = context_current(), .flags = flags};
    *out = events = self;
    return CUDA_SUCCESS;
}

API(cuEventDestroy_v2, NEEDS_CONTEXT, (CUevent handle), (handle)) {
    struct sim_event *self = event_get(handle);
    if (!self) return CUDA_ERROR_INVALID_HANDLE;
    event_drop(self);
    return CUDA_SUCCESS;
}

CUresult event_record(struct sim_event *self, struct sim_stream *stream) {
    struct mark *mark;
    CUresult result = engine_add(stream, &(struct op){.kind = OP_RECORD}, &mark);
    if (result) return result;
    mark_unref(self->mark);
    self->mark = mark;
    self->capture = NULL;
    return CUDA_SUCCESS;
}

CUresult event_wait(struct sim_event *self, struct sim_stream *stream) {
    if (!self->mark || self->mark->done) return CUDA_SUCCESS;
    return engine_add(stream, &(struct op){.kind = OP_WAIT, .wait = mark_ref(self->mark)}, NULL);
}

static CUresult record(CUevent handle, CUstream where) {
    struct sim_event *self = event_get(handle);
    struct sim_stream *stream = stream_get(where);
    if (!self || !stream || self->ctx != stream->ctx) return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
        self->capture = stream->capture;
        self->capture_id = stream->capture->id;
        return CUDA_SUCCESS;
    }
    return event_record(self, stream);
}
SAME(cuEventRecord, NEEDS_CONTEXT, (CUevent event, CUstream stream), record(event, stream))
SAME(cuEventRecord_ptsz, NEEDS_CONTEXT, (CUevent event, CUstream stream), record(event, stream_per_thread(stream)))
SAME(cuEventRecordWithFlags, NEEDS_CONTEXT, (CUevent event, CUstream stream, unsigned flags),
     ((void)flags, record(event, stream)))
SAME(cuEventRecordWithFlags_ptsz, NEEDS_CONTEXT, (CUevent event, CUstream stream, unsigned flags),
     ((void)flags, record(event, stream_per_thread(stream))))

/* A stream that waits for an event of a capture joins the capture. */
static CUresult wait_event(CUstream where, CUevent handle) {
    struct sim_event *self = event_get(handle);
    struct sim_stream *stream = stream_get(where);
    if (!self || !stream) return CUDA_ERROR_INVALID_HANDLE;
    if (self->capture) {
        if (!capture_goes_on(self->capture, self->capture_id)) return CUDA_ERROR_CAPTURED_EVENT;
        if (stream->capture && stream->capture != self->capture) return CUDA_ERROR_STREAM_CAPTURE_MERGE;
        if (stream->legacy) return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        stream->capture = self->capture;
        return CUDA_SUCCESS;
    }
    return stream->capture ? CUDA_ERROR_STREAM_CAPTURE_ISOLATION : event_wait(self, stream);
}
SAME(cuStreamWaitEvent, NEEDS_CONTEXT, (CUstream stream, CUevent event, unsigned flags),
     ((void)flags, wait_event(stream, event)))
SAME(cuStreamWaitEvent_ptsz, NEEDS_CONTEXT, (CUstream stream, CUevent event, unsigned flags),
     ((void)flags, wait_event(stream_per_thread(stream), event)))

API(cuEventQuery, NEEDS_CONTEXT, (CUevent handle), (handle)) {
    struct sim_event *self = event_get(handle);
    if (!self) return CUDA_ERROR_INVALID_HANDLE;
    if (self->capture) return CUDA_ERROR_CAPTURED_EVENT;
    CUresult forbidden = capture_forbids();
    if (forbidden) return forbidden;
    return !self->mark || self->mark->done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

API(cuEventSynchronize, NEEDS_CONTEXT, (CUevent handle), (handle)) {
    struct sim_event *self = event_get(handle);
    if (!self) return CUDA_ERROR_INVALID_HANDLE;
    if (self->capture) return CUDA_ERROR_CAPTURED_EVENT;
    if (!self->mark) return CUDA_SUCCESS;
    struct mark *mark = mark_ref(self->mark);
    struct sim_context *ctx = self->ctx;
    engine_wait_mark(mark);
    mark_unref(mark);
    return ctx->sticky;
}

static CUresult elapsed(float *out, CUevent from, CUevent to) {
    struct sim_event *a = event_get(from), *b = event_get(to);
    if (!a || !b || (a->flags | b->flags) & CU_EVENT_DISABLE_TIMING || !a->mark || !b->mark)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!a->mark->done || !b->mark->done) return CUDA_ERROR_NOT_READY;
    *out = (float)((double)b->mark->when_ns - (double)a->mark->when_ns) / 1e6f;
    return CUDA_SUCCESS;
}
SAME(cuEventElapsedTime, NEEDS_CONTEXT, (float *out, CUevent from, CUevent to), elapsed(out, from, to))
SAME(cuEventElapsedTime_v2, NEEDS_CONTEXT, (float *out, CUevent from, CUevent to), elapsed(out, from, to))
