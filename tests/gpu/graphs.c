// env: MEMSTOW_CUDA_MOVES=2M
/* graphs.c — CUDA graphs that were captured before a model left the device can be replayed after it has come back.
 * Nothing moves during a capture. Memory that is requested in a capture belongs to the graph, not to the model. */
#include "gpu.h"

enum { BYTES = 16 << 20, WORDS = BYTES / 4 };

static uint32_t model;
static CUstream stream;
static CUdeviceptr weights, sums;

static CUgraphExec captured(void) {
    CUgraph graph;
    CUgraphExec exec;
    OK(cu.capture(stream, 0));
    gpu_add(sums, weights, WORDS, stream);
    gpu_add(sums, weights, WORDS, stream);
    MUST(abi_memstow_stow(model) == -EBUSY);
    OK(cu.capture_end(stream, &graph));
    OK(cu.graph_make(&exec, graph, 0));
    OK(cu.graph_destroy(graph));
    return exec;
}

static void replays(void) {
    gpu_fill(weights, WORDS, 3, stream);
    gpu_fill(sums, WORDS, 0, stream);
    OK(cu.stream_wait(stream));
    CUgraphExec exec = captured();
    uint32_t wanted = 0;
    for (int round = 0; round < 4; round++) {
        OK(cu.graph_launch(exec, stream));
        OK(cu.stream_wait(stream));
        wanted += 6;
        MUST(gpu_all_are(sums, WORDS, wanted));
        MUST(abi_memstow_stow(model) == 2 * (int64_t)BYTES);
        MUST(abi_memstow_restore(model) == 2 * (int64_t)BYTES);
    }
    MUST(gpu_all_are(weights, WORDS, 3));
    OK(cu.graph_end(exec));
}

/* Memory that is requested in a capture is not the model's, even in the model's scope, and does not move. */
static void of_the_graph(void) {
    CUgraph graph;
    CUgraphExec exec;
    CUdeviceptr scratch;
    MUST(!abi_memstow_scope_enter(model));
    OK(cu.capture(stream, 0));
    OK(cu.alloc_async(&scratch, BYTES, stream));
    gpu_fill(scratch, WORDS, 5, stream);
    gpu_add(sums, scratch, WORDS, stream);
    OK(cu.free_async(scratch, stream));
    OK(cu.capture_end(stream, &graph));
    MUST(!abi_memstow_scope_leave(model));
    OK(cu.graph_make(&exec, graph, 0));
    gpu_fill(sums, WORDS, 0, stream);
    OK(cu.graph_launch(exec, stream));
    OK(cu.stream_wait(stream));
    MUST(abi_memstow_stow(model) == 2 * (int64_t)BYTES);
    MUST(abi_memstow_restore(model) == 2 * (int64_t)BYTES);
    OK(cu.graph_launch(exec, stream));
    OK(cu.stream_wait(stream));
    MUST(gpu_all_are(sums, WORDS, 10));
    OK(cu.graph_end(exec));
    OK(cu.graph_destroy(graph));
}

int main(void) {
    gpu_begin();
    model = gpu_model("unet");
    OK(cu.stream(&stream, 1));
    weights = gpu_alloc_for(model, BYTES, NULL);
    sums = gpu_alloc_for(model, BYTES, &stream);
    MUST(!abi_memstow_owner_idle(model, 1)); /* before each move, this program waits for the work that it launched */
    replays();
    of_the_graph();
    puts("ok");
    return 0;
}
