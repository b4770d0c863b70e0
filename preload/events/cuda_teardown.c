/* cuda_teardown.c — see cuda_teardown.h. As soon as the driver has ended blocks, another thread may get a new block
 * with the address of one that ended, or blocks of a new graph or context with the same handle. The teardown must not
 * remove these new blocks. So teardowns are numbered: each gets its number before the driver is called. A block keeps
 * the newest number at the time when it came (`ends`). A teardown removes only blocks with a lower number than its
 * own. */
#include "preload/events/cuda_teardown.h"

#include "preload/base/forked.h"
#include "preload/cuda/cuda_captures.h"
#include "preload/cuda/cuda_counts.h"
#include "preload/shared/os.h"
#include "preload/serve/serve_contexts.h"
#include "preload/vram/vram_contexts.h"
#include "preload/vram/vram_move.h"

static uint32_t begun, under_way; /* how many teardowns have begun so far; how many are in progress */

uint32_t cuda_teardown_count(void) { return __atomic_load_n(&begun, __ATOMIC_SEQ_CST); }

bool cuda_teardown_any(void) { return __atomic_load_n(&under_way, __ATOMIC_SEQ_CST) != 0; }

void cuda_teardown_number(struct cuda_call *call) {
    __atomic_fetch_add(&under_way, 1, __ATOMIC_SEQ_CST);
    call->end = __atomic_add_fetch(&begun, 1, __ATOMIC_SEQ_CST);
    call->ends_much = true;
}

/* If the program leaves a call by longjmp, this function is not called, and the teardown counts as in progress for
 * ever. From then on, no free counts as missed. */
void cuda_teardown_over(const struct cuda_call *call) {
    if (call->ending == CUDA_CONTEXT_ENDS || call->ending == CUDA_DEVICE_ENDS) vram_move_go_on(&call->mark);
    __atomic_fetch_sub(&under_way, 1, __ATOMIC_SEQ_CST);
}

static bool is_of_context(uint32_t kind) {
    return kind == SNAP_CUDA_DEVICE_MEMORY || kind == SNAP_CUDA_MANAGED || kind == SNAP_CUDA_ARRAY ||
           kind == SNAP_CUDA_PINNED || kind == SNAP_CUDA_REGISTERED;
}

static bool ends_with(const struct snap_cuda_block *block, const void *context) {
    const struct cuda_call *call = context;
    if ((int32_t)(block->ends - call->end) >= 0) return false; /* the block was made after the teardown began */
    if (call->ending == CUDA_GRAPH_ENDS) return block->kind == SNAP_CUDA_GRAPH && block->pool == call->ends;
    return block->context == call->ends && !block->pool && is_of_context(block->kind); /* a pool's memory stays */
}

static void end_block(enum cuda_space space, const struct snap_cuda_block *block, void *call) {
    struct snap_cuda_block gone;
    if ((space != CUDA_ADDRESS && space != CUDA_ARRAY) || !ends_with(block, call)) return;
    if (cuda_blocks_take_if(space, block->address, ends_with, call, &gone)) cuda_events_forget(space, &gone);
}

/* --- child graphs that a graph takes over, and that end with it --- */

/* The child graph `of` moves into `graph`. */
struct heir {
    uint64_t graph, of;
};

static void inherit(enum cuda_space space, const struct snap_cuda_block *block, void *context) {
    const struct heir *heir = context;
    struct cuda_hold hold;
    if (space != CUDA_ADDRESS || block->kind != SNAP_CUDA_GRAPH || block->pool != heir->of) return;
    struct snap_cuda_block *record = cuda_blocks_hold(space, block->address, &hold);
    if (!record) return;
    if (record->kind == SNAP_CUDA_GRAPH && record->pool == heir->of)
        __atomic_store_n(&record->pool, heir->graph, __ATOMIC_RELAXED);
    cuda_blocks_let_go(&hold);
}

void cuda_teardown_node(const struct cuda_call *call, const struct cuda_node *node, cuda_handle graph) {
    if (node->type == CUDA_NODE_ALLOC) cuda_events_made_in_graph(call, &node->alloc, graph);
    if (node->type != CUDA_NODE_GRAPH || node->child.ownership != CUDA_CHILD_MOVES || !cuda_counts_begun()) return;
    cuda_blocks_all(inherit, &(struct heir){(uintptr_t)graph, (uintptr_t)node->child.graph});
}

/* --- teardowns: before and after the driver's call --- */

void cuda_teardown_begins(struct cuda_call *call, enum cuda_ending what, cuda_handle handle) {
    if (!handle) return;
    call->ending = what;
    call->ends = (uintptr_t)handle;
    if (what != CUDA_GRAPH_ENDS) {
        vram_move_hold_off(handle, &call->mark);
        call->captures = cuda_captures_of_context(handle);
        call->served_end = vram_contexts_end_begins();
    }
    cuda_teardown_number(call);
}

void cuda_teardown_ended(struct cuda_call *call) {
    cuda_handle context = (cuda_handle)call->ends;
    if (!call->ending) return;
    if (cuda_counts_begun()) cuda_blocks_all(end_block, call);
    if (call->ending == CUDA_GRAPH_ENDS) return;
    cuda_captures_ended(call->captures);
    cuda_device_context_ended();
    serve_contexts_ended(context, call->ending == CUDA_DEVICE_ENDS, call->served_end);
}

/* A reset ends only blocks of the primary context, not those of contexts that the program made. Pools, physical memory
 * and addresses belong to no context (cuda_runtime_api.h says so). */
void cuda_teardown_reset(struct cuda_call *call, uint32_t device) {
    call->device = device;
    cuda_handle primary;
    cuda_device_ask_primary(device, &primary);
    cuda_teardown_begins(call, CUDA_DEVICE_ENDS, primary);
}

void cuda_teardown_release(struct cuda_call *call, uint32_t device) {
    call->device = device;
    cuda_teardown_begins(call, CUDA_CONTEXT_ENDS, cuda_device_primary_of(device));
}

void cuda_teardown_primary_released(struct cuda_call *call) {
    if (call->ending && !cuda_device_is_active(call->device)) cuda_teardown_ended(call);
}

static void cuda_teardown_abandon(void) { under_way = 0; }
FORKED(cuda_teardown_abandon);
