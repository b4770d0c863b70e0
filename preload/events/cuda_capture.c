/* cuda_capture.c — see cuda_capture.h. */
#include "preload/events/cuda_capture.h"

#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/events/cuda_teardown.h"
#include "preload/shared/os.h"

/* A capture whose blocks are searched for. */
struct captured {
    uint64_t graph;   /* the graph that the capture has become; 0: none */
    uint32_t capture; /* the capture's number */
};

/* Whether the block belongs to a node of this capture, which has not become a graph yet. */
static bool is_captured(const struct snap_cuda_block *block, const void *context) {
    const struct captured *captured = context;
    return block->kind == SNAP_CUDA_GRAPH && !block->pool && block->users == captured->capture;
}

static void end_abandoned(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    struct snap_cuda_block gone;
    if (space == CUDA_ADDRESS && is_captured(block, context) &&
        cuda_blocks_take_if(space, block->address, is_captured, context, &gone))
        cuda_events_forget(space, &gone);
}

/* Call it when a capture has ended and has not become a graph: the blocks of its nodes end with it. */
static void abandon_capture(uint32_t capture) {
    struct captured captured = {.capture = capture};
    if (capture && cuda_counts_begun()) cuda_blocks_all(end_abandoned, &captured);
}

void cuda_capture_changes(struct cuda_call *call, enum cuda_capture what, cuda_handle stream) {
    call->captured = what;
    call->stream = cuda_device_stream(stream, call->per_thread);
    if (what == CUDA_CAPTURE_BEGINS) {
        struct cuda_target target = cuda_device_now();
        call->captures = cuda_captures_begin(call->stream, &target);
        return;
    }
    cuda_teardown_number(call);
    call->capture = what == CUDA_CAPTURE_ENDS ? cuda_device_capture(call->stream) : cuda_captures_find(call->stream);
    call->captures = cuda_captures_of_stream(call->stream);
    if (what == CUDA_STREAM_ENDS) cuda_captures_leave(call->captures, true);
}

static void begin_went(const struct cuda_call *call, int result) {
    if (result)
        cuda_captures_never_began(call->captures);
    else
        cuda_captures_began(call->captures, cuda_device_capture(call->stream));
}

/* If a capture is invalid, the call that ends it fails, but the capture ends. If a stream is destroyed, its capture
 * ends and does not become a graph. */
void cuda_capture_went(const struct cuda_call *call, int result) {
    bool of_stream = call->captured == CUDA_STREAM_ENDS;
    if (call->captured == CUDA_CAPTURE_BEGINS) {
        begin_went(call, result);
    } else if (result && (of_stream || cuda_device_captures(call->stream, true))) {
        if (of_stream) cuda_captures_leave(call->captures, false);
    } else {
        if (result || of_stream) abandon_capture(call->capture);
        cuda_captures_ended(call->captures);
    }
}

static void give_to_graph(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    const struct captured *captured = context;
    struct cuda_hold hold;
    if (space != CUDA_ADDRESS || !is_captured(block, captured)) return;
    struct snap_cuda_block *record = cuda_blocks_hold(space, block->address, &hold);
    if (!record) return;
    if (is_captured(record, captured)) {
        __atomic_store_n(&record->ends, cuda_teardown_count(), __ATOMIC_RELAXED);
        os_store(&record->pool, captured->graph);
    }
    cuda_blocks_let_go(&hold);
}

void cuda_capture_becomes(const struct cuda_call *call, cuda_handle graph) {
    struct captured captured = {(uintptr_t)graph, call->capture};
    if (call->capture && cuda_counts_begun()) cuda_blocks_all(give_to_graph, &captured);
}
