/* cuda_ends.c — see cuda_events.h: what ends much at once, captures, graphs and contexts. Ends are numbered before the
 * driver is called, and take with them what was there by then: once the driver has ended it, another thread may have
 * been given the same numbers, of blocks and of the graph or context itself. */
#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/events/cuda_events.h"
#include "preload/shared/os.h"
#include "preload/vram/stow_cuda.h"
#include "preload/vram/vram_serve.h"
#include "preload/base/forked.h"

static uint32_t begun, under_way; /* ends */

uint32_t cuda_events_ends_begun(void) { return __atomic_load_n(&begun, __ATOMIC_SEQ_CST); }

bool cuda_events_any_ends(void) { return __atomic_load_n(&under_way, __ATOMIC_SEQ_CST) != 0; }

static void begin_end(struct cuda_call *call) {
    __atomic_fetch_add(&under_way, 1, __ATOMIC_SEQ_CST);
    call->end = __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    call->ends_much = true;
}

/* A call that is left by longjmp never comes here: then no free counts as missed any more. */
void cuda_events_end_is_over(void) { __atomic_fetch_sub(&under_way, 1, __ATOMIC_SEQ_CST); }

/* --- captures --- */

struct captured {
    uint64_t graph;
    uint32_t capture;
};

/* A node's memory of a capture that has become no graph yet. */
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

/* The capture becomes no graph. */
static void abandon_capture(uint32_t capture) {
    struct captured captured = {.capture = capture};
    if (capture && cuda_counts_begun()) cuda_blocks_all(end_abandoned, &captured);
}

void cuda_events_capture(struct cuda_call *call, enum cuda_capture what, cuda_handle stream) {
    call->captured = what;
    call->stream = cuda_device_stream(stream, call->per_thread);
    if (what == CUDA_CAPTURE_BEGINS) {
        struct cuda_place place = cuda_device_now();
        call->captures = cuda_captures_begin(call->stream, &place);
        return;
    }
    begin_end(call);
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

/* An end that fails may have ended it, if it had become invalid. A capture ends with its stream, and becomes no graph.
 */
void cuda_events_capture_went(const struct cuda_call *call, int result) {
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
        __atomic_store_n(&record->ends, cuda_events_ends_begun(), __ATOMIC_RELAXED);
        os_store(&record->pool, captured->graph);
    }
    cuda_blocks_let_go(&hold);
}

void cuda_events_captured(const struct cuda_call *call, cuda_handle graph) {
    struct captured captured = {(uintptr_t)graph, call->capture};
    if (call->capture && cuda_counts_begun()) cuda_blocks_all(give_to_graph, &captured);
}

/* --- graphs, contexts --- */

static bool is_of_context(uint32_t kind) {
    return kind == SNAP_CUDA_DEVICE_MEMORY || kind == SNAP_CUDA_MANAGED || kind == SNAP_CUDA_ARRAY ||
           kind == SNAP_CUDA_PINNED || kind == SNAP_CUDA_REGISTERED;
}

static bool ends_with(const struct snap_cuda_block *block, const void *context) {
    const struct cuda_call *call = context;
    if ((int32_t)(block->ends - call->end) >= 0) return false; /* it came later */
    if (call->ending == CUDA_GRAPH_ENDS) return block->kind == SNAP_CUDA_GRAPH && block->pool == call->ends;
    return block->context == call->ends && is_of_context(block->kind);
}

static void end_block(enum cuda_space space, const struct snap_cuda_block *block, void *call) {
    struct snap_cuda_block gone;
    if (space == CUDA_PART || !ends_with(block, call)) return;
    if (cuda_blocks_take_if(space, block->address, ends_with, call, &gone)) cuda_events_forget(space, &gone);
}

void cuda_events_ends(struct cuda_call *call, enum cuda_ending what, cuda_handle handle) {
    if (!handle) return;
    call->ending = what;
    call->ends = (uintptr_t)handle;
    if (what != CUDA_GRAPH_ENDS) {
        call->captures = cuda_captures_of_context(handle);
        call->served_end = stow_cuda_end_begins();
    }
    begin_end(call);
}

void cuda_events_ended(struct cuda_call *call) {
    cuda_handle context = (cuda_handle)call->ends;
    if (!call->ending) return;
    if (cuda_counts_begun()) cuda_blocks_all(end_block, call);
    if (call->ending == CUDA_GRAPH_ENDS) return;
    cuda_captures_ended(call->captures);
    cuda_device_context_ended();
    vram_serve_context_ended(context, call->ending == CUDA_DEVICE_ENDS, call->served_end);
}

/* Pools, physical memory and addresses are no context's (cuda_runtime_api.h says so), and contexts that the program has
 * made stay. */
void cuda_events_reset(struct cuda_call *call, uint32_t device) {
    call->device = device;
    cuda_events_ends(call, CUDA_DEVICE_ENDS, cuda_device_ask_primary(device));
}

void cuda_events_release(struct cuda_call *call, uint32_t device) {
    call->device = device;
    cuda_events_ends(call, CUDA_CONTEXT_ENDS, cuda_device_primary_of(device));
}

void cuda_events_primary_released(struct cuda_call *call) {
    if (call->ending && !cuda_device_is_active(call->device)) cuda_events_ended(call);
}

static void cuda_events_abandon_ends(void) { under_way = 0; }
FORKED(cuda_events_abandon_ends);
